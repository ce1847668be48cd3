"""The weights of one call of an attention layer, and what the name of the layer says about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

Kind = Literal["encoder", "context", "decoder", "self"]
KINDS: tuple[Kind, ...] = ("encoder", "context", "decoder", "self")

HIDDEN = -1e9  # masks that are added to the scores hide keys with this number, a lower one, or −inf
CROSS = re.compile("cross|multihead_attn|encoder_attn|encdec|context", re.IGNORECASE)


@final
@dataclass(frozen=True, eq=False)
class Attention:
    """The weights of one call of an attention layer.

    Attributes:
        name: The name of the module in the model.
        kind: "encoder" or "decoder" for self-attention, "context" for attention of a decoder to an
            encoder, "self" for self-attention whose name says neither.
        layer: The number of the layer, from 0 on, as in the name of the module.
        weights: (B, heads, L, S), without dropout. Rows of padding are meaningless.
        visible: (B, 1 or heads, L, S), True where a query may attend to a key.
        queries: (B, L), True where a query is not padding, as far as the masks of the model say.
        start: The position of the first query among the keys of self-attention; not 0 with a
            key–value cache.
        alpha: The α of the heads, a number or (heads,); None if the module has none.
    """

    name: str
    kind: Kind
    layer: int
    weights: Tensor
    visible: Tensor
    queries: Tensor
    start: int = 0
    alpha: float | Tensor | None = None


def is_hiding(mask: Tensor) -> Tensor:
    """Where a mask that is added to the scores hides a key.

    >>> import torch
    >>> is_hiding(torch.tensor([0.5, -30.0, -1e9, float("-inf")]))
    tensor([False, False,  True,  True])
    """
    return mask <= max(torch.finfo(mask.dtype).min, HIDDEN)


def layer_numbers(names: Sequence[str], is_cross: Sequence[bool]) -> list[int]:
    """The numbers of the layers of attention modules with these names.

    The number is the first one in the name. Where that is not unique among the modules of a kind, they
    are counted in the order given.

    >>> layer_numbers(["encoder.block.0.layer.0", "encoder.block.1.layer.0"], [False, False])
    [0, 1]
    >>> layer_numbers(["stage.0.block.0", "stage.0.block.1", "stage.1.block.0"], [False] * 3)
    [0, 1, 2]
    """
    groups: dict[tuple[str, bool], list[int]] = {}
    for place, (name, cross) in enumerate(zip(names, is_cross, strict=True)):
        groups.setdefault((side_of(name), cross), []).append(place)
    layers = [0] * len(names)
    for places in groups.values():
        found = [re.search(r"(?:^|\.)(\d+)(?:\.|$)", names[place]) for place in places]
        numbers = [int(match[1]) for match in found if match]
        if len(set(numbers)) < len(places):
            numbers = list(range(len(places)))
        for place, number in zip(places, numbers, strict=True):
            layers[place] = number
    return layers


def kind_of(name: str, *, is_self: bool) -> Kind:
    """The kind of attention of a module.

    >>> kind_of("decoder.layers.0.self_attn", is_self=True)
    'decoder'
    >>> kind_of("decoder.layers.0.multihead_attn", is_self=False)
    'context'
    >>> kind_of("model.layers.0.self_attn", is_self=True)
    'self'
    """
    return side_of(name) if is_self else "context"


def side_of(name: str) -> Kind:
    """Whether a module is in an encoder, in a decoder, or "self" if its name does not say."""
    for part in reversed(name.lower().split(".")):
        if "decoder" in part:
            return "decoder"
        if "encoder" in part and not CROSS.search(part):
            return "encoder"
    return "self"


def is_cross_name(name: str) -> bool:
    """Whether the name of a module says that it attends to another sequence.

    >>> is_cross_name("decoder.layers.0.encoder_attn"), is_cross_name("decoder.layers.0.self_attn")
    (True, False)
    """
    return CROSS.search(within_layer(name)) is not None


def within_layer(name: str) -> str:
    """What follows the last number of a name.

    >>> within_layer("encoder.layer.0.crossattention.self")
    'crossattention.self'
    """
    return re.split(r"(?:^|\.)\d+(?:\.|$)", name)[-1]
