"""Attention of queries to keys: PyTorch's softmax attention, this library's, and all weights at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

import fenchel
from benchmarks.inputs import Inputs
from benchmarks.problems import ATTENTION_FAMILIES, Case
from benchmarks.registry import Operation

SDPA = "F.scaled_dot_product_attention"
LONGEST_DENSE = 2048  # keys: all weights and their gradients of longer ones take gigabytes


@dataclass(frozen=True)
class AttentionOperation(Operation):
    """`longest` is the most keys for which it runs."""

    longest: int | None = None

    def fits(self, case: Case) -> bool:
        return super().fits(case) and (self.longest is None or case.columns <= self.longest)


def _operation(
    family: str,
    name: str,
    call: Callable[[Inputs, bool], Tensor],
    *learned: str,
    longest: int | None = None,
) -> Operation:
    is_causal = ATTENTION_FAMILIES[family].is_causal
    learns = ("query", "key", "value", *learned)
    return AttentionOperation(
        name, family, SDPA, lambda x: call(x, is_causal), (), learns, ("cpu",), longest
    )


def _softmax(x: Inputs, is_causal: bool) -> Tensor:
    return functional.scaled_dot_product_attention(x.query, x.key, x.value, is_causal=is_causal)


def _entmax(alpha: float) -> Callable[[Inputs, bool], Tensor]:
    def call(x: Inputs, is_causal: bool) -> Tensor:
        return fenchel.attention(x.query, x.key, x.value, alpha=alpha, is_causal=is_causal)

    return call


def _learned(x: Inputs, is_causal: bool) -> Tensor:
    return fenchel.attention(x.query, x.key, x.value, alpha=x.alpha_of_heads, is_causal=is_causal)


def _dense(alpha: float) -> Callable[[Inputs, bool], Tensor]:
    """What `fenchel.attention` does where there is no kernel."""

    def call(x: Inputs, is_causal: bool) -> Tensor:
        scores = (x.query / math.sqrt(x.query.shape[-1])) @ x.key.mT
        queries, keys = scores.shape[-2:]
        visible = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        return fenchel.entmax(scores, alpha, mask=visible if is_causal else None) @ x.value

    return call


def _of(family: str) -> list[Operation]:
    return [
        _operation(family, SDPA, _softmax),
        _operation(family, "fenchel.attention(1.5)", _entmax(1.5)),
        _operation(family, "fenchel.attention(2)", _entmax(2.0)),
        _operation(family, "fenchel.attention(α a head)", _learned, "alpha_of_heads"),
        _operation(family, "all weights, entmax(1.5)", _dense(1.5), longest=LONGEST_DENSE),
        _operation(family, "fenchel.attention(1.05)", _entmax(1.05), longest=LONGEST_DENSE),
        _operation(family, "all weights, entmax(1.05)", _dense(1.05), longest=LONGEST_DENSE),
    ]


SPARSE_ATTENTION = [operation for family in ATTENTION_FAMILIES for operation in _of(family)]
