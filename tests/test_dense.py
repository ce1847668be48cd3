"""Sparse tensors are refused by name, wherever a person may pass one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import fenchel
from fenchel import continuous, nn

LINE = continuous.GaussianBasis.grid(4, 0.2)
STATES, MASK = torch.randn(2, 5, 6), torch.ones(2, 5, dtype=torch.bool)
LENGTHS, ALPHA, FLAT = torch.tensor([2, 5]), torch.tensor([1.5, 2.0]), torch.rand(5)
HEADS = {name: torch.randn(2, 2, 5, 4) for name in ("q", "k", "v")}
SEEN = {"mask": torch.zeros(5, 5), "alpha": ALPHA, "lengths": LENGTHS}
SCORES, TARGET = torch.rand(2, 3), torch.rand(2, 3).softmax(-1)
POINTS = {"p": FLAT, "weights": FLAT}
RECURRENT = {
    "query": torch.randn(2, 4),
    "keys": STATES,
    "values": torch.randn(2, 5, 3),
    "lengths": LENGTHS,
    "mask": MASK,
}


def multihead() -> nn.MultiheadAttention:
    return nn.MultiheadAttention(6, 2, batch_first=True)


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "attention": (fenchel.attention, HEADS | SEEN),
    "attention_weights": (
        fenchel.attention_weights,
        {name: HEADS[name] for name in "qk"} | SEEN,
    ),
    "MultiheadAttention": (
        multihead(),
        dict.fromkeys(("query", "key", "value"), STATES)
        | {"attn_mask": torch.zeros(5, 5), "key_padding_mask": torch.zeros(2, 5)},
    ),
    "MultiheadAttention-boolean": (
        lambda **masks: multihead()(STATES, STATES, STATES, **masks),
        {"attn_mask": ~torch.ones(5, 5, dtype=torch.bool), "key_padding_mask": ~MASK},
    ),
    "AdditiveAttention": (
        nn.AdditiveAttention(4, 6, 8),
        RECURRENT | {"projected_keys": torch.randn(2, 5, 8)},
    ),
    "GeneralAttention": (
        nn.GeneralAttention(4, 6),
        RECURRENT | {"projected_keys": torch.randn(2, 5, 4)},
    ),
    "ContinuousAttention1d": (
        nn.ContinuousAttention1d.pooled(4, LINE),
        RECURRENT,
    ),
    "fusedmax2d": (
        fenchel.fusedmax2d,
        {"strength": torch.full((1, 1), 0.1), "scores": SCORES, "mask": SCORES > 0},
    ),
    "continuous.entmax": (
        lambda loc, variance: continuous.entmax(loc, variance, LINE),
        {"loc": FLAT, "variance": FLAT},
    ),
    "GaussianBasis": (continuous.GaussianBasis, {"centers": FLAT, "scales": FLAT}),
    "GaussianBasis-points": (LINE, {"points": FLAT}),
    "ridge_values": (
        lambda **given: continuous.ridge_values(basis=LINE, **given),
        {"values": STATES, "positions": FLAT, "lengths": LENGTHS, "mask": MASK},
    ),
    "attention_moments": (continuous.attention_moments, {"weights": FLAT, "positions": FLAT}),
    "fit_mixture": (
        lambda **given: continuous.fit_mixture(modes=2, floor=0.1, **given),
        {"weights": FLAT, "positions": FLAT},
    ),
    "box_positions": (continuous.box_positions, {"boxes": torch.rand(3, 4)}),
    "deformed_log": (continuous.deformed_log, {"u": FLAT}),
    "deformed_exp": (continuous.deformed_exp, {"u": FLAT}),
    "normalizer": (
        lambda weights: continuous.normalizer(FLAT, weights),
        {"weights": FLAT},
    ),
    "negentropy": (
        lambda weights: continuous.negentropy(FLAT, weights),
        {"weights": FLAT},
    ),
    "escort": (lambda **given: continuous.escort(**given, beta=0.5), POINTS),
    "covariance": (
        lambda **given: continuous.covariance(**given, beta=0.5),
        POINTS | {"phi": torch.eye(5), "psi": torch.eye(5)},
    ),
    "TruncatedParabola": (continuous.TruncatedParabola, {"loc": FLAT, "scale": FLAT}),
    "BetaGaussian": (
        continuous.BetaGaussian,
        {"loc": torch.zeros(2, 2), "covariance_matrix": torch.eye(2), "alpha": ALPHA},
    ),
    "linear_entmax_loss": (
        fenchel.linear_entmax_loss,
        {
            "hidden": torch.randn(2, 4),
            "weight": torch.randn(3, 4),
            "target": TARGET,
            "alpha": torch.full((2, 1), 1.5),
            "bias": torch.zeros(3),
        },
    ),
}
EACH = [(call, name) for call, (_, arguments) in CALLS.items() for name in arguments]


@pytest.mark.parametrize("call", CALLS)
def test_dense_tensors_are_taken(call):
    function, arguments = CALLS[call]
    function(**arguments)


@pytest.mark.parametrize(("call", "name"), EACH, ids=["-".join(each) for each in EACH])
def test_sparse_tensors_are_refused_by_name(call, name):
    function, arguments = CALLS[call]
    message = f"{name} must be dense, got layout torch.sparse_coo (convert with {name}.to_dense())"
    with pytest.raises(fenchel.FenchelError, match=f"^{re.escape(message)}"):
        function(**arguments | {name: arguments[name].to_sparse()})
