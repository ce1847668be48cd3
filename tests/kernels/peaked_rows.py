"""Rows with one score above many equal ones, where the probability of that one takes every value."""

from __future__ import annotations

import torch
from torch import Tensor


def peaked_rows(columns: int, alpha: float, count: int) -> Tensor:
    """`count` rows with one score above equal ones, and as many with two levels of these."""
    e = alpha - 1
    nearly_all = 1 - torch.logspace(-5, -0.5, count - count // 2, dtype=torch.float64)
    peak = torch.cat((torch.linspace(0.01, 0.6, count // 2, dtype=torch.float64), nearly_all))
    other = (1 - peak) / (columns - 1)
    below = (peak.log() - other.log()) if e == 0 else (peak**e - other**e) / e
    rows = torch.zeros(2 * count, columns)
    rows[:, 1:] = -below.repeat(2).unsqueeze(1)
    rows[count:, columns // 2 :] *= 1.0001
    return rows
