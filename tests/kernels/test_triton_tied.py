"""Triton's solvers end on rows of few different scores, at the right answer.

`tests/maps/test_tied_rows.py` tests this on the CPU and, with a GPU, at every length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import budget as reference_budget
from fenchel.kernels.reference import entmax as reference_entmax
from fenchel.kernels.reference import fusedmax as reference_fusedmax
from fenchel.kernels.reference import normmax as reference_normmax
from fenchel.kernels.reference import oscarmax as reference_oscarmax
from fenchel.kernels.reference import pnormmax as reference_pnormmax
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels
from tests.strategies import TIED_ROWS

with defining_kernels():
    from fenchel.kernels.triton import budget, entmax, fusedmax, normmax, oscarmax, pnormmax

pytestmark = MARKS

ACCURACY = 2e-7
COLUMNS = 25
SCALES = (0.02, 0.6, 5.0)
Solver = Callable[[Tensor, float], Any]
SOLVERS: dict[str, tuple[Solver, Solver, tuple[float, ...]]] = {
    "entmax": (
        entmax.entmax,
        reference_entmax.entmax,
        (0.3, 1.02, 1.2, 1.5, 1.75, 2.0, 2.5, 30.0),
    ),
    "normmax": (normmax.normmax, reference_normmax.normmax, (1.05, 1.5, 2.0, 30.0)),
    "pnormmax": (pnormmax.pnormmax, reference_pnormmax.pnormmax, (1.05, 1.5, 1.8, 30.0)),
    "budget": (budget.budget, reference_budget.budget, (0.3, 1.0, 2.5)),
    "fusedmax": (fusedmax.fusedmax, reference_fusedmax.fusedmax, (0.0, 0.1, 3.0)),
    "oscarmax": (oscarmax.oscarmax, reference_oscarmax.oscarmax, (0.0, 0.1, 3.0)),
}
CASES = [(name, value) for name, (_, _, values) in SOLVERS.items() for value in values]


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_every_solver_ends(kernel: str, name: str, parameter: float) -> None:
    solve, reference, _ = SOLVERS[name]
    rows = [make(1, COLUMNS, scale) for make in TIED_ROWS for scale in SCALES]
    x = torch.cat(rows).to(DEVICE)
    found, expected = solve(x, parameter), reference(x.double(), parameter)
    p, exact = (each[0] if isinstance(each, tuple) else each for each in (found, expected))
    assert (p.double() - exact).abs().max() <= ACCURACY
    assert (p.double().sum(-1) - exact.sum(-1)).abs().max() <= 1e-6
