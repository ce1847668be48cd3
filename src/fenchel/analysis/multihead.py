"""The weights of `torch.nn.MultiheadAttention` and its subclasses, computed beside a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fenchel.analysis.attention import is_cross_name, is_hiding, within_layer
from fenchel.mechanisms.masks import causal


def weights_of(
    module: nn.MultiheadAttention, forward: Callable[..., Any], given: Mapping[str, Any]
) -> tuple[Tensor, Tensor]:
    """The weights (B, heads, L, S) of a call, without dropout, and the visible keys.

    Args:
        module: The layer.
        forward: Its own `forward`.
        given: The arguments of the call by name.
    """
    query, key, value = (given[name] for name in ("query", "key", "value"))
    masks = {name: given.get(name) for name in ("key_padding_mask", "attn_mask")}
    is_causal = bool(given.get("is_causal", False))
    if query.is_nested:
        query, masks["key_padding_mask"] = _padded(query)
        key = value = query
    with _evaluating(module):
        _, weights = forward(
            query,
            key,
            value,
            **_of_one_type(masks, query),
            is_causal=is_causal,
            need_weights=True,
            average_attn_weights=False,
        )
    weights = weights if weights.ndim == 4 else weights.unsqueeze(0)
    keys = key.shape[1 if query.ndim == 3 and module.batch_first else 0]
    return weights, _visible(weights, keys, **masks, is_causal=is_causal)


def fused_call(layer: nn.TransformerEncoderLayer, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the self-attention of an encoder layer, from those of the layer."""
    x, padding = given["src"], given.get("src_key_padding_mask")
    if x.is_nested:
        x, padding = _padded(x)
    x = layer.norm1(x) if layer.norm_first else x
    masks = {"attn_mask": given.get("src_mask"), "key_padding_mask": padding}
    return {"query": x, "key": x, "value": x, **masks, "is_causal": given.get("is_causal", False)}


def is_self(name: str, query: Tensor, key: Tensor) -> bool:
    """Whether a call attends to the sequence of its queries.

    Queries and keys that are different tensors may still be of one sequence, for example normalized
    separately, so the name of the layer decides. If it says nothing, their values do.
    """
    if query is key:
        return True
    if is_cross_name(name):
        return False
    same_name = "self" in within_layer(name).lower()
    return same_name or (query.shape == key.shape and bool((query == key).all()))


def _visible(
    weights: Tensor,
    keys: int,
    *,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    is_causal: bool,
) -> Tensor:
    """(B, 1 or heads, L, S) from masks that are True, or −inf, where a query may not attend.

    The keys that the layer adds itself come after the `keys` given.
    """
    batch, heads, length, total = weights.shape
    visible = torch.ones(batch, 1, length, keys, dtype=torch.bool, device=weights.device)
    if attn_mask is not None:
        allowed = ~_is_forbidden(attn_mask)
        visible = visible & (
            allowed.view(-1, heads, length, keys) if allowed.ndim == 3 else allowed
        )
    elif is_causal:
        visible = visible & causal(length, keys, device=weights.device)
    if key_padding_mask is not None:
        visible = visible & ~_is_forbidden(key_padding_mask).view(batch, 1, 1, keys)
    return nn.functional.pad(visible, (0, total - keys), value=True)


def _is_forbidden(mask: Tensor) -> Tensor:
    return mask if mask.dtype == torch.bool else is_hiding(mask)


def _of_one_type(masks: Mapping[str, Tensor | None], like: Tensor) -> dict[str, Tensor | None]:
    """Masks that PyTorch takes together: boolean, or all added to the scores."""
    if all(mask is None or mask.dtype == torch.bool for mask in masks.values()):
        return dict(masks)
    return {
        name: torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))
        if mask is not None and mask.dtype == torch.bool
        else mask
        for name, mask in masks.items()
    }


def _padded(x: Tensor) -> tuple[Tensor, Tensor]:
    """A nested tensor as a padded one, and its padding (B, L)."""
    lengths = torch.tensor([len(each) for each in x.unbind()], device=x.device)
    padded = x.to_padded_tensor(0.0)
    return padded, torch.arange(padded.shape[1], device=x.device) >= lengths.unsqueeze(1)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Without dropout, which would also draw random numbers."""
    training = module.training
    module.training = False
    try:
        yield
    finally:
        module.training = training
