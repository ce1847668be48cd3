"""The names of the PyPI package `entmax` 1.3, with its arguments and defaults.

Results are exact, so the arguments that control its approximations are accepted but not used: `k` (the
number of entries to sort first), `n_iter` (the number of bisections) and `ensure_sum_one` (whether to
divide by the sum). These functions also work where that package raises or returns NaN: α = 1, empty
rows, −inf, ignored targets, half precision, `vmap` and `torch.compile`.

>>> import torch
>>> from fenchel.compat.entmax import entmax15
>>> entmax15(torch.tensor([1.0, 0.5, -1.0]), dim=0, k=2)
tensor([0.6740, 0.3260, 0.0000])
"""

from fenchel.compat.entmax.activations import Entmax15, Sparsemax, entmax15, sparsemax
from fenchel.compat.entmax.losses import (
    Entmax15Loss,
    EntmaxBisectLoss,
    NormmaxBisectLoss,
    SparsemaxBisectLoss,
    SparsemaxLoss,
    entmax15_loss,
    entmax_bisect_loss,
    normmax_bisect_loss,
    sparsemax_bisect_loss,
    sparsemax_loss,
)
from fenchel.compat.entmax.root_finding import (
    BudgetBisect,
    EntmaxBisect,
    NormmaxBisect,
    SparsemaxBisect,
    budget_bisect,
    entmax_bisect,
    normmax_bisect,
    sparsemax_bisect,
)

__version__ = "1.3"

__all__ = [
    "BudgetBisect",
    "Entmax15",
    "Entmax15Loss",
    "EntmaxBisect",
    "EntmaxBisectLoss",
    "NormmaxBisect",
    "NormmaxBisectLoss",
    "Sparsemax",
    "SparsemaxBisect",
    "SparsemaxBisectLoss",
    "SparsemaxLoss",
    "budget_bisect",
    "entmax15",
    "entmax15_loss",
    "entmax_bisect",
    "entmax_bisect_loss",
    "normmax_bisect",
    "normmax_bisect_loss",
    "sparsemax",
    "sparsemax_bisect",
    "sparsemax_bisect_loss",
    "sparsemax_loss",
]
