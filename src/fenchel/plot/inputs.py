"""Conversion of arguments: lists, arrays and tensors of any kind are accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fenchel.errors import FenchelError

Map = Callable[[Tensor], Tensor]


def as_numbers(values: Any, name: str) -> list[float]:
    """Convert a one-dimensional sequence of numbers to a list.

    >>> as_numbers(torch.tensor([1.0, 2.0], requires_grad=True), "scores")
    [1.0, 2.0]
    """
    try:
        row = torch.as_tensor(values, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        row = None
    if row is None or row.ndim != 1 or len(row) == 0 or bool(row.isnan().any()):
        got = f"shape {tuple(row.shape)}" if row is not None and row.ndim != 1 else repr(values)
        raise FenchelError(f"{name} must be a non-empty sequence of numbers, got {got}")
    return row.tolist()


def as_words(words: Any) -> list[str]:
    """Convert the words of a text to a list of strings."""
    if not isinstance(words, Iterable):
        raise FenchelError(f"words must be a sequence of strings, got {type(words).__name__}")
    strings = [str(word) for word in words]
    if not strings:
        raise FenchelError("words must contain at least one word, got none")
    return strings


def as_named_maps(maps: Any) -> dict[str, Map]:
    """Convert a mapping from names to maps to a dictionary."""
    valid = isinstance(maps, Mapping) and len(maps) > 0
    if not valid or not all(callable(map) for map in maps.values()):
        raise FenchelError(
            f"maps must be a non-empty dictionary from names to functions of scores, got {maps!r}"
        )
    return {str(name): map for name, map in maps.items()}


def apply_map(map: Map, scores: Tensor) -> Tensor:
    """Return map(scores), which must have the shape of the scores."""
    with torch.no_grad():
        weights = map(scores)
    if not isinstance(weights, Tensor) or weights.shape != scores.shape:
        got = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        raise FenchelError(
            f"a map must return one weight per score, of shape {tuple(scores.shape)}, got {got}"
        )
    return weights


def as_image(image: Any) -> np.ndarray:
    """Convert an image to an array (rows, columns) or (rows, columns, channels)."""
    if isinstance(image, Tensor):
        image = image.detach().cpu()
        image = image.float() if image.dtype in (torch.bfloat16, torch.float16) else image
    array = np.asarray(image)
    grey, coloured = array.ndim == 2, array.ndim == 3 and array.shape[-1] in (1, 3, 4)
    if not (grey or coloured) or array.size == 0 or array.dtype.kind not in "buif":
        channels_first = array.ndim == 3 and array.shape[0] in (1, 3, 4)
        hint = " (channels come last: image.movedim(0, -1))" if channels_first else ""
        raise FenchelError(
            "image must be numbers of shape (rows, columns) or (rows, columns, 3), "
            f"got {type(image).__name__} of shape {array.shape}{hint}"
        )
    return array
