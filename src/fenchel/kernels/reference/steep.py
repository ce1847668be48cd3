"""α-entmax for α > 2, where p = t^{1/ε} has an infinite slope at t = 0.

There the normaliser is no unknown: beside the smallest score b of the support, all of p may hang on
digits of it that float64 does not hold. The unknowns are b itself and its probability u, with

    p_i = (ε (x_i − b) + u^ε)^{1/ε}  for x_i ≥ b,

where the difference of two scores is exact and nothing is subtracted from it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.deformed import support_power
from fenchel.kernels.reference.threshold import solve_decreasing


def steep_entmax(scores: Tensor, eps: Tensor) -> Tensor:
    """entmax of finite rows along the last dimension, for ε = α − 1 ≥ 1; −inf is left out."""
    bottom = _smallest_of_support(scores, eps)
    inside = scores >= bottom
    above = torch.where(inside, scores - bottom, 0.0)
    log_above = torch.log(eps * above)

    def log_probabilities(u: Tensor) -> Tensor:
        return torch.logaddexp(log_above, eps * torch.log(u)) / eps

    def evaluate(minus_u: Tensor) -> tuple[Tensor, Tensor]:
        """Σp − 1, convex in u because every p_i is a norm of (u, ·)."""
        log_p = log_probabilities(-minus_u)
        slopes = torch.exp((eps - 1) * (torch.log(-minus_u) - log_p))
        slopes = torch.where(above == 0, 1.0, slopes)
        total = torch.where(inside, torch.exp(log_p), 0.0).sum(-1, keepdim=True)
        return total - 1, -torch.where(inside, slopes, 0.0).sum(-1, keepdim=True)

    largest = 1 / inside.sum(-1, keepdim=True).to(scores.dtype)
    u = -solve_decreasing(evaluate, -largest, torch.zeros_like(largest))
    return torch.where(inside, torch.exp(log_probabilities(u)), 0.0)


def _smallest_of_support(scores: Tensor, eps: Tensor) -> Tensor:
    """The smallest score that leaves Σp below one when its own probability is zero, by bisection."""
    ordered = scores.sort(dim=-1, descending=True).values
    last = torch.zeros_like(scores[..., :1], dtype=torch.long)
    after = torch.full_like(last, scores.shape[-1])
    while bool((after - last > 1).any()):
        middle = (last + after) // 2
        above = eps * (scores - ordered.gather(-1, middle))
        fits = support_power(above, 1 / eps).sum(-1, keepdim=True) < 1
        last, after = torch.where(fits, middle, last), torch.where(fits, after, middle)
    return ordered.gather(-1, last)
