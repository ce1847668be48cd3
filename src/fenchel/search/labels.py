"""Tokens and probabilities as text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from fenchel.errors import rule

Label = Callable[[int], str]
Symbols = Label | Sequence[str]


def labels(symbols: Symbols) -> Label:
    """Token ↦ text, from a function or from the list of all symbols."""
    if callable(symbols):
        return symbols

    def label(token: int) -> str:
        if not 0 <= token < len(symbols):
            expected, got = f"more than {token} of them", len(symbols)
            raise rule("every token has a symbol", expected=expected, got=got)
        return symbols[token]

    return label


def percent(probability: float) -> str:
    """A probability for a reader: what is not 0 or 1 is not shown as if it were.

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


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide letters, none for accents.

    >>> columns("draw"), columns("日本"), columns("e" + chr(0x301))
    (4, 4, 1)
    """
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )
