"""pnormmax and its Jacobian along any dimension of a CUDA tensor: a row a program, in float64.

    pnormmax            argmax_p <p, x> - ||p||_s^2 / 2 over the simplex
    pnormmax_backward   its Jacobian times a vector, from p alone

s is a number, or a tensor with one value a row. The solver is that of the reference. Nothing waits for
the device, so CUDA graphs can capture every call; rows that are too long for one program run on the
reference.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference import pnormmax as reference
from fenchel.kernels.rows import from_rows, parameter_to_rows, to_rows
from fenchel.kernels.triton.launch.addressing import copy_back
from fenchel.kernels.triton.launch.parameters import parameter_parts
from fenchel.kernels.triton.thresholds.row_programs import held, launch
from fenchel.kernels.triton.thresholds.squared_norm_rows import pnormmax_pull_back, pnormmax_rows


def pnormmax(
    scores: Tensor, p: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> Tensor:
    """argmax_{q ∈ Δ} ⟨q, x⟩ − ½‖q‖_p² along `dim`; −inf and what the mask leaves out get zero."""
    if not held(scores, dim):
        rows = to_rows(scores, dim, mask)
        return from_rows(reference.pnormmax(rows, parameter_to_rows(p, scores, dim)), scores, dim)
    out = torch.empty_like(scores)
    high, low, exponents = parameter_parts(p)
    tensors = launch(pnormmax_rows, dim, scores, out, mask, exponents, numbers=(high, low))
    return copy_back(out, tensors[1])


def pnormmax_backward(grad: Tensor, q: Tensor, p: float | Tensor, dim: int = -1) -> Tensor:
    """J g = K h, h = g − (1ᵀK g)/(1ᵀK1), with K the inverse Hessian of ½‖q‖_p² on the support."""
    if not held(q, dim):
        rows = to_rows(grad, dim), to_rows(q, dim), parameter_to_rows(p, q, dim)
        return from_rows(reference.pnormmax_backward(*rows), q, dim)
    out = torch.empty_like(q)
    high, low, exponents = parameter_parts(p)
    tensors = launch(pnormmax_pull_back, dim, q, grad, out, exponents, numbers=(high, low))
    return copy_back(out, tensors[2])
