"""Deformed logarithms and exponentials, the functions of Tsallis statistics."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fenchel.checks import check_number
from fenchel.continuous.family import log_power
from fenchel.continuous.validation import check_real
from fenchel.kernels.reference.deformed import phi1


def deformed_log(u: Tensor, beta: float = 1.0) -> Tensor:
    """log_β(u) = (u^{1−β} − 1)/(1 − β), the logarithm at β = 1.

    The inverse of `deformed_exp`; −1/(1−β) at u = 0 where β < 1, −∞ where β ≥ 1. Its derivative is
    u^{−β}. Written as log(u) φ₁((1−β) log u), φ₁(z) = (eᶻ − 1)/z, it does not cancel near β = 1.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Eq. 4.

    >>> import torch
    >>> deformed_log(torch.tensor([0.0, 0.5, 1.0, 2.0]), beta=0.0)
    tensor([-1.0000, -0.5000,  0.0000,  1.0000])
    """
    check_real(u, "u")
    check_number(beta, name="beta", above=-math.inf)
    positive = u > 0
    log_u = torch.log(torch.where(positive, u, 1.0))
    at_zero = -1 / (1 - beta) if beta < 1 else -torch.inf
    value = log_u * phi1((1 - beta) * log_u)
    return torch.where(positive, value, torch.where(u == 0, at_zero, torch.nan))


def deformed_exp(u: Tensor, beta: float = 1.0) -> Tensor:
    """exp_β(u) = [1 + (1 − β)u]_+^{1/(1−β)}, the exponential at β = 1.

    For β < 1 it is exactly zero from u = −1/(1−β) down: this is where sparse densities get their
    support. Its derivative is exp_β(u)^β. Evaluated as exp(log1p((1−β)u)/(1−β)).

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Eq. 4.

    >>> import torch
    >>> deformed_exp(torch.tensor([-2.0, -1.0, 0.0, 1.0]), beta=0.0)
    tensor([0., 0., 1., 2.])
    """
    check_real(u, "u")
    check_number(beta, name="beta", above=-math.inf)
    eps = torch.full((), 1 - beta, dtype=u.dtype, device=u.device)
    outside = (1 - beta) * u <= -1
    value = torch.exp(log_power(torch.where(outside, 0.0, u), eps))
    return torch.where(outside, 0.0 if beta < 1 else torch.inf, value)
