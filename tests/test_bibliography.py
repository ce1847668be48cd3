"""Everything public can be cited, by itself or by its name."""

from __future__ import annotations

from importlib import import_module

import pytest

import fenchel
import fenchel.compat.entmax
from fenchel.bibliography import CONTINUOUS, ENTRIES

TOOLS = {"FenchelError", "citation", "explain", "implementation"}
CITED = [
    *(f"fenchel.{name}" for name in fenchel.__all__ if name not in TOOLS),
    *(f"fenchel.nn.{name}" for name in fenchel.nn.__all__),
    *(f"fenchel.continuous.{name}" for name in fenchel.continuous.__all__),
    *(f"fenchel.compat.entmax.{name}" for name in fenchel.compat.entmax.__all__),
]


def found(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize("path", [path for path in CITED if callable(found(path))])
def test_a_thing_and_its_name_have_the_same_papers(path):
    papers = fenchel.citation(found(path))
    assert papers.startswith("@")
    assert fenchel.citation(path) == papers


def test_papers_are_not_repeated_and_without_arguments_all_are_given():
    assert fenchel.citation(fenchel.sparsemax, "sparsemax_loss").count("@") == 1
    assert fenchel.citation().count("@") == len(ENTRIES)


def test_continuous_entmax_is_of_another_paper():
    assert fenchel.citation(fenchel.continuous.entmax) == ENTRIES[CONTINUOUS]
    assert fenchel.citation(CONTINUOUS) == ENTRIES[CONTINUOUS]


@pytest.mark.parametrize("unknown", ["sparsmax", 3, print, fenchel.citation, fenchel])
def test_what_is_not_known_is_said(unknown):
    with pytest.raises(fenchel.FenchelError, match="unknown method"):
        fenchel.citation(unknown)
