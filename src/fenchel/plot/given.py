"""What a picture is given, in plain form: lists, arrays and tensors of any kind are welcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fenchel.errors import rule


def numbers(values: Any, name: str) -> list[float]:
    """A row of numbers.

    >>> numbers(torch.tensor([1.0, 2.0], requires_grad=True), "scores")
    [1.0, 2.0]
    """
    try:
        row = torch.as_tensor(values, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        row = None
    if row is None or row.ndim != 1 or len(row) == 0 or bool(row.isnan().any()):
        got = f"shape {tuple(row.shape)}" if row is not None and row.ndim != 1 else repr(values)
        raise rule(f"{name} are drawn one by one", expected="a row of numbers", got=got)
    return row.tolist()


def texts(words: Any) -> list[str]:
    """Words, or whatever pieces a text has."""
    pieces = [str(word) for word in words] if isinstance(words, Iterable) else []
    if not pieces:
        got = "none" if isinstance(words, Iterable) else type(words).__name__
        raise rule("a text has words", expected="at least one", got=got)
    return pieces


def named_maps(maps: Any) -> dict[str, Any]:
    """Maps by their names."""
    known = isinstance(maps, Mapping) and len(maps) > 0
    if not known or not all(callable(each) for each in maps.values()):
        expected = "a dictionary from names to functions of scores"
        raise rule("maps have names", expected=expected, got=repr(maps))
    return {str(name): each for name, each in maps.items()}


def pixels(image: Any) -> np.ndarray:
    """An image as matplotlib shows it: (rows, columns), or with colours last."""
    if isinstance(image, Tensor):
        image = image.detach().cpu()
        image = image.float() if image.dtype in (torch.bfloat16, torch.float16) else image
    shown = np.asarray(image)
    grey, coloured = shown.ndim == 2, shown.ndim == 3 and shown.shape[-1] in (1, 3, 4)
    if not (grey or coloured) or shown.size == 0 or shown.dtype.kind not in "buif":
        first = shown.ndim == 3 and shown.shape[0] in (1, 3, 4)
        hint = " (colours come last: image.movedim(0, -1))" if first else ""
        expected = "numbers of shape (rows, columns) or (rows, columns, 3)"
        got = f"{type(image).__name__} of shape {shown.shape}{hint}"
        raise rule("an image has rows and columns", expected=expected, got=got)
    return shown
