"""The error that the benchmarks tell is that of the call which they time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

pytest.importorskip("entmax")

import fenchel
from benchmarks.errors import SAMPLE, largest_error
from benchmarks.inputs import make_inputs
from benchmarks.peers import OPERATIONS
from benchmarks.problems import Case
from benchmarks.report import markdown
from benchmarks.rows import make_rows
from benchmarks.runner import Effort, measure_case
from tests.benchmarks.made_up import FakeTimer, describe, row

MAPS = [o for o in OPERATIONS.values() if o.family == "maps" and o.name.startswith("fenchel.")]


@pytest.mark.parametrize("operation", MAPS, ids=lambda operation: operation.name)
def test_maps_are_exact_to_the_digits_of_their_dtype(operation):
    inputs = make_inputs(Case("maps", 2 * SAMPLE, 40))
    error = largest_error(operation, inputs)
    assert error is not None
    assert 0 < error < 2e-7


def test_the_error_of_a_wrong_call_is_found_wherever_it_is_in_a_row():
    inputs = make_inputs(Case("maps", 4 * SAMPLE, 40))
    ours = OPERATIONS["maps", "fenchel.sparsemax"]
    name = "entmax.sparsemax"

    def wrong(x):
        p = fenchel.sparsemax(x.scores)
        return p + 0.25 * (torch.arange(p.shape[-1]) == 39)

    theirs = replace(OPERATIONS["maps", name], call=wrong)
    assert name in ours.peers
    assert largest_error(theirs, inputs) == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize(
    ("family", "name"), [("maps", "entmax.sparsemax(k=100)"), ("losses", "fenchel.sparsemax_loss")]
)
def test_what_has_no_exact_map_has_no_error(family, name):
    inputs = make_inputs(Case(family, 8, 40))
    assert largest_error(OPERATIONS[family, name], inputs) is None


@pytest.mark.parametrize(
    ("backward", "clock"), [(False, "device"), (True, "device"), (False, "host")]
)
def test_errors_are_measured_forward_only(backward, clock):
    case = Case("maps", 8, 40, backward=backward, clock=clock)
    ours = OPERATIONS["maps", "fenchel.sparsemax"]
    (measured,) = measure_case(case, [ours], FakeTimer(1.0), Effort(rounds=1))
    (told,) = make_rows(case, [measured], describe("cpu"))
    told_of = clock == "device" and not backward
    assert (told.error is not None) == told_of
    assert ("against float64" in markdown([told])) == told_of


def test_errors_are_told_to_two_digits():
    assert "| `fenchel.sparsemax` | 1.2e-07 |" in markdown([row(error=1.23e-7)])
