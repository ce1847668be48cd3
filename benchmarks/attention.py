"""Continuous attention to images: expectations of a basis, and whole layers by the regions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from benchmarks.angle_loop import AngleLoop, loop_over_angles
from benchmarks.inputs import Inputs, sides, square_basis
from benchmarks.problems import FUNCTIONS
from benchmarks.registry import Operation
from fenchel.continuous import GaussianBasis, entmax
from fenchel.continuous.expectation import ANGLES
from fenchel.nn import ContinuousAttention2d

LOOP = f"loop over {ANGLES} angles"
AUTOGRAD_LOOP = f"{LOOP}, autograd"
DISCRETE = "softmax attention"
FITTING = "fenchel.nn.ContinuousAttention2d"
FITTED = f"{FITTING}, values fitted before"


def _basis(x: Inputs) -> GaussianBasis:
    return square_basis(x.upstream.shape[-1], x.location.dtype, x.location.device.type)


def _expectation(x: Inputs) -> Tensor:
    return entmax(x.location, x.covariance, _basis(x), 2.0)


def _loop(x: Inputs) -> Tensor:
    basis = _basis(x)
    result = AngleLoop.apply(x.location, x.covariance, basis.centers, basis.scales, ANGLES)
    return result  # pyright: ignore[reportReturnType]


def _autograd_loop(x: Inputs) -> Tensor:
    basis = _basis(x)
    return loop_over_angles(x.location, x.covariance, basis.centers, basis.scales, ANGLES)


def _discrete(x: Inputs) -> Tensor:
    scores = x.values @ x.hidden.unsqueeze(-1) / math.sqrt(x.hidden.shape[-1])
    return (torch.softmax(scores, 1).mT @ x.values).squeeze(1)


@lru_cache
def _layer(width: int, dtype: torch.dtype, device: str) -> ContinuousAttention2d:
    basis = square_basis(FUNCTIONS, dtype, device)
    return ContinuousAttention2d.pooled(width, basis).to(device=device, dtype=dtype)


def _attend(x: Inputs, coefficients: Tensor | None) -> Tensor:
    layer = _layer(x.hidden.shape[-1], x.hidden.dtype, x.hidden.device.type)
    grid = sides(x.values.shape[1])
    return layer(x.hidden, x.values, positions=grid, coefficients=coefficients)[0]


def _of_densities(name: str, call: Callable[[Inputs], Tensor], *peers: str) -> Operation:
    return Operation(name, "continuous", LOOP, call, peers, learns=("location", "covariance"))


def _of_regions(name: str, call: Callable[[Inputs], Tensor]) -> Operation:
    return Operation(name, "continuous-regions", DISCRETE, call, learns=("hidden",))


ATTENTION = [
    _of_densities(LOOP, _loop),
    _of_densities(AUTOGRAD_LOOP, _autograd_loop),
    _of_densities("fenchel.continuous.entmax(2)", _expectation, LOOP, AUTOGRAD_LOOP),
    _of_regions(DISCRETE, _discrete),
    _of_regions(FITTING, lambda x: _attend(x, None)),
    _of_regions(FITTED, lambda x: _attend(x, x.coefficients)),
]
