"""Tokens and probabilities as text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from fenchel.errors import FenchelError

Label = Callable[[int], str]
Symbols = Label | Sequence[str]


def labels(symbols: Symbols) -> Label:
    """Return a function from tokens to text, given such a function or the list of all symbols."""
    if callable(symbols):
        return symbols

    def label(token: int) -> str:
        if not 0 <= token < len(symbols):
            raise FenchelError(
                f"symbols must contain every token, got {len(symbols)} symbols and token {token}"
            )
        return symbols[token]

    return label


def percent(probability: float) -> str:
    """Format a probability; only exactly 0 and 1 (up to rounding) are shown as 0 % and 100 %.

    >>> [percent(p) for p in (1.0, 0.99999, 0.6642, 0.00001, 0.0)]
    ['100 %', '>99.9 %', '66.4 %', '<0.1 %', '0 %']
    """
    if probability <= 0:
        return "0 %"
    if probability < 0.0005:
        return "<0.1 %"
    if probability < 0.9995:
        return f"{100 * probability:.1f} %"
    return "100 %" if probability > 1 - 1e-9 else ">99.9 %"


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal: 2 per wide character, 0 per accent.

    >>> display_width("draw"), display_width("日本"), display_width("e" + chr(0x301))
    (4, 4, 1)
    """
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )
