"""Attention modules of models of transformers (≥ 5), which declare where they return their weights.

A model lists in `_can_record_outputs` the classes of its attention modules and the place of the weights
in what they return. transformers itself is not imported here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from fenchel.analysis.attention import is_hiding
from fenchel.errors import FenchelError

OTHER_SEQUENCE = ("key_value_states", "encoder_hidden_states")  # arguments of cross-attention
POSITIONAL = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
OPAQUE = ("flash", "flex", "paged")  # implementations whose weights cannot be seen


class Recorded(NamedTuple):
    """Where an attention module returns its weights.

    Attributes:
        index: Their place in the output.
        is_cross: Whether it is cross-attention, if the model says so.
    """

    index: int
    is_cross: bool


class _Wanted(NamedTuple):
    """An entry of `_can_record_outputs`."""

    target: type | None
    class_name: str | None
    layer_name: str | None
    recorded: Recorded

    def matches(self, name: str, module: nn.Module) -> bool:
        is_target = self.target is not None and isinstance(module, self.target)
        is_named = self.class_name is not None and name.endswith(self.class_name)
        inside = self.layer_name is None or f".{self.layer_name.strip('.')}." in f".{name}."
        return (is_target or is_named) and inside


def attention_modules(model: nn.Module) -> dict[nn.Module, Recorded]:
    """The attention modules of the models of transformers in a model, in the order of its modules."""
    found: dict[nn.Module, Recorded] = {}
    _collect(model, "", [], found)
    return found


class FusedCalls(TorchFunctionMode):
    """Records the calls of `F.scaled_dot_product_attention` in a `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[dict[str, Any]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is F.scaled_dot_product_attention:
            self.calls.append(dict(zip(POSITIONAL, args, strict=False)) | (kwargs or {}))
        return func(*args, **(kwargs or {}))


def weights_of(
    name: str, recorded: Recorded, output: Any, given: Mapping[str, Any], fused: FusedCalls
) -> tuple[Tensor, Tensor]:
    """The weights (B, heads, L, S) of a call of an attention module, and the visible keys.

    Args:
        name: The name of the module.
        recorded: Where it returns its weights.
        output: What it returned.
        given: Its arguments.
        fused: The calls of PyTorch's attention, whose weights are computed if none are returned.
    """
    returned = isinstance(output, tuple) and -len(output) <= recorded.index < len(output)
    weights = output[recorded.index] if returned else None
    if weights is None and len(fused.calls) == 1:
        return _weights_of_fused(fused.calls[0], length=given["hidden_states"].shape[1])
    if not isinstance(weights, Tensor) or weights.ndim != 4:
        got = f"shape {tuple(weights.shape)}" if isinstance(weights, Tensor) else "none"
        raise FenchelError(
            f"{name} must return weights of shape (B, heads, L, S), got {got}: "
            'try attn_implementation="eager"'
        )
    mask = given.get("attention_mask", given.get("mask"))
    return weights, _visible(weights, mask if isinstance(mask, Tensor) else None)


def _weights_of_fused(call: Mapping[str, Any], length: int) -> tuple[Tensor, Tensor]:
    """The weights and the visible keys of a call of `F.scaled_dot_product_attention`."""
    query, key, mask = call["query"].float(), call["key"].float(), call.get("attn_mask")
    if call.get("enable_gqa"):
        key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    scale = call.get("scale")
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if call.get("is_causal"):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    visible = _visible(scores, mask)
    weights = torch.where(visible, scores.softmax(-1), 0)  # a query that sees nothing has NaN
    if length == 1:  # the heads that share a key may be passed as its queries
        weights, visible = (
            each.expand(weights.shape).flatten(1, 2).unsqueeze(2) for each in (weights, visible)
        )
    return weights, visible


def _visible(weights: Tensor, mask: Tensor | None) -> Tensor:
    """(B, 1 or heads, L, S) from a mask that is True where keys are seen, or is added to the scores."""
    batch, _, length, keys = weights.shape
    if mask is None:
        return torch.ones(batch, 1, length, keys, dtype=torch.bool, device=weights.device)
    if mask.dtype.is_floating_point:
        mask = ~is_hiding(mask)
    mask = mask.bool()
    if mask.ndim == 2:  # (L, S), or (B, S)
        mask = mask[None, None] if mask.shape == (length, keys) else mask[:, None, None]
    return mask[..., :keys].expand(batch, -1, length, keys)


def is_self(recorded: Recorded, given: Mapping[str, Any]) -> bool:
    """Whether a call attends to the sequence of its queries."""
    return not recorded.is_cross and all(given.get(name) is None for name in OTHER_SEQUENCE)


@contextmanager
def returning_weights(model: nn.Module) -> Iterator[None]:
    """Let the models of transformers in a model use eager attention where the weights cannot be seen."""
    configs = {}
    for module in model.modules():
        config = getattr(module, "config", None)
        used = getattr(config, "_attn_implementation", None)
        if isinstance(used, str) and any(name in used for name in OPAQUE):
            configs[id(config)] = config, used
    try:
        for config, _ in configs.values():
            config._attn_implementation_internal = "eager"
        yield
    finally:
        for config, used in configs.values():
            config._attn_implementation_internal = used


def _collect(
    module: nn.Module, name: str, wanted: list[_Wanted], found: dict[nn.Module, Recorded]
) -> None:
    """The nearest model around a module decides which of its modules have weights."""
    kind: Any = type(module)
    if hasattr(kind, "_can_record_outputs"):  # a model of transformers
        wanted = _wanted(kind._can_record_outputs or {})
    entry = next((each for each in wanted if each.matches(name, module)), None)
    if entry is not None:
        found.setdefault(module, entry.recorded)
    for child_name, child in module.named_children():
        _collect(child, f"{name}.{child_name}".removeprefix("."), wanted, found)


def _wanted(entries: Mapping[str, Any]) -> list[_Wanted]:
    wanted = []
    for key, specs in entries.items():
        if not key.endswith("attentions"):
            continue
        for spec in specs if isinstance(specs, list) else [specs]:
            target = getattr(spec, "target_class", spec)
            class_name = spec if isinstance(spec, str) else getattr(spec, "class_name", None)
            recorded = Recorded(getattr(spec, "index", 1), "cross" in key)
            wanted.append(
                _Wanted(
                    target if isinstance(target, type) else None,
                    class_name,
                    getattr(spec, "layer_name", None),
                    recorded,
                )
            )
    return wanted
