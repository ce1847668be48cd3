"""The tensors of a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from benchmarks.problems import ATTENTION_FAMILIES, FUNCTIONS, HEADS, AttentionFamily, Case
from benchmarks.trained_attention import trained_heads
from fenchel.continuous import GaussianBasis, ridge_values

BASIS_SCALE = math.sqrt(0.001)  # of the functions over an image
WITH_SCORES = ("maps", "losses", "structured")


@dataclass(frozen=True)
class Inputs:
    """The tensors of a case; those that its family does not use are empty.

    `upstream` is the gradient that arrives at the output; `location` and `covariance` are those of
    densities, `values` the regions of an image and `coefficients` the function fitted to them; `query`,
    `key` and `value` are those of attention, with `alpha_of_heads`.
    """

    scores: Tensor
    alpha: Tensor
    target: Tensor
    upstream: Tensor
    hidden: Tensor
    weight: Tensor
    location: Tensor
    covariance: Tensor
    values: Tensor
    coefficients: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    alpha_of_heads: Tensor


def make_inputs(case: Case, seed: int = 0) -> Inputs:
    """Normal scores, and one α in [1.25, 2] per row (in float32 at least, as a parameter is)."""
    generator = torch.Generator(case.device).manual_seed(seed)
    place = {"generator": generator, "device": case.device}

    def normal(wanted: bool, *shape: int) -> Tensor:
        return torch.randn(shape if wanted else 0, dtype=case.dtype, **place)

    rows, columns, width, family = case.rows, case.columns, case.width, case.family
    layer, densities, regions = (
        family == name for name in ("layers", "continuous", "continuous-regions")
    )
    scale = 1 / math.sqrt(width) if layer else 1.0  # so that the scores are normal too
    wide = torch.promote_types(case.dtype, torch.float32)
    values = normal(regions, rows, columns, width)
    attends = family in ATTENTION_FAMILIES
    problem = ATTENTION_FAMILIES.get(family, AttentionFamily(()))
    heads = problem.batch, HEADS
    outputs = (*heads, rows, width) if attends else (rows, width if regions else columns)
    inputs = Inputs(
        scores=normal(family in WITH_SCORES, rows, columns),
        alpha=1.25 + 0.75 * torch.rand((rows, 1), dtype=wide, **place),
        target=torch.randint(columns, (rows,), **place),
        upstream=normal(family not in ("losses", "layers"), *outputs),
        hidden=normal(layer or regions, rows, width),
        weight=scale * normal(layer, columns, width),
        location=0.5 + 0.2 * normal(densities, rows, 2),
        covariance=_covariance(normal(True, rows, 2, 2)) if densities else normal(False),
        values=values,
        coefficients=_fitted(values) if regions else normal(False),
        query=problem.deviation * normal(attends, *heads, rows, width),
        key=normal(attends, *heads, columns, width),
        value=normal(attends, *heads, columns, width),
        alpha_of_heads=torch.linspace(1.3, 1.7, HEADS, dtype=wide, device=case.device),
    )
    if problem.is_trained:
        query, key, value = (x.to(case.dtype) for x in trained_heads(HEADS, columns, width))
        inputs = replace(inputs, query=query[..., -rows:, :], key=key, value=value)
    return inputs


@lru_cache
def square_basis(functions: int, dtype: torch.dtype, device: str) -> GaussianBasis:
    """Functions at the places of a square grid over an image."""
    side = math.isqrt(functions)
    return GaussianBasis.grid((side, side), BASIS_SCALE, dtype=dtype).to(device)


def sides(regions: int) -> tuple[int, int]:
    """The grid that regions of an image are."""
    return math.isqrt(regions), math.isqrt(regions)


def _covariance(root: Tensor) -> Tensor:
    """Ellipses of about a seventh of the image, the narrowest a tenth."""
    eye = torch.eye(2, dtype=root.dtype, device=root.device)
    return 0.15**2 * root @ root.mT + 0.01 * eye


def _fitted(values: Tensor) -> Tensor:
    basis = square_basis(FUNCTIONS, values.dtype, values.device.type)
    return ridge_values(values, sides(values.shape[1]), basis).detach()
