"""How many sentences a device takes at once; no figure depends on it but by rounding."""

from __future__ import annotations

from typing import NamedTuple

import torch

FEW, MANY = 256, 2048  # sentences that keep a CPU busy, and a GPU
SYMBOLS = 2**16  # of a batch on a GPU: their states take some GB in a model of the largest recipe
SCORES = 2**27  # of a batch on a GPU: 512 MB


class AtOnce(NamedTuple):
    """Sentences of a batch at most, and symbols (None: any number of them)."""

    sentences: int
    symbols: int | None


def told_at_once(device: torch.device, vocabulary: int) -> AtOnce:
    """For a model that is told the targets, and makes the scores of all their symbols.

    >>> told_at_once(torch.device("cuda"), 8000)
    AtOnce(sentences=2048, symbols=16777)
    """
    if device.type == "cpu":
        return AtOnce(FEW, None)
    return AtOnce(MANY, max(min(SYMBOLS, SCORES // vocabulary), 1))


def searched_at_once(device: torch.device, vocabulary: int, width: int) -> int:
    """For a search, which makes the scores of one symbol after each of its prefixes.

    >>> searched_at_once(torch.device("cuda"), 32000, width=5)
    838
    """
    if device.type == "cpu":
        return FEW
    return max(min(MANY, SCORES // (vocabulary * width)), 1)
