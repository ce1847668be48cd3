"""The short examples run in seconds, and show what their docstrings say."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
import torch

import fenchel
from tests.pages import ROOT

SHORT = (
    "swap_softmax",
    "learned_alpha",
    "sparse_output",
    "own_regularizer",
    "continuous_attention",
)


def run(name: str) -> Any:
    """What `main` of an example returns."""
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"]()


def test_every_example_is_tested():
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert names == {*SHORT, "digits", "label_sets"}


@pytest.mark.parametrize("name", SHORT)
def test_an_example_says_how_to_run_it(name):
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert f"python examples/{name}.py" in text


def test_a_swapped_map_is_sparse_and_fine_tuning_lowers_the_error(capsys):
    found = run("swap_softmax")
    error, support = zip(
        *(found[name] for name in ("softmax", "swapped", "fine-tuned")), strict=True
    )
    assert support[0] == 20
    assert max(support[1:]) < 5
    assert error[2] < error[0]
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_alpha_moves_apart():
    peaked, mean = run("learned_alpha").tolist()
    assert mean < 1.4 < 1.6 < peaked


def test_most_classes_get_probability_zero():
    figures = run("sparse_output")
    assert figures["accuracy"] > 0.9
    assert figures["classes with p > 0"] < 2
    assert figures["label has p > 0"] > 0.95


def test_the_regularizer_spreads_weights_over_neighbours():
    p = run("own_regularizer")
    sparse = fenchel.sparsemax(torch.tensor([0.1, 0.2, 0.9, 0.3, 0.8, 0.2, 0.1]))
    assert p.sum().item() == pytest.approx(1, abs=1e-6)
    assert p.diff(n=2).abs().sum() < sparse.diff(n=2).abs().sum()


def test_attention_finds_the_bump():
    error, density = run("continuous_attention")
    assert error < 0.1
    assert density.loc.shape == (64, 1, 1)
