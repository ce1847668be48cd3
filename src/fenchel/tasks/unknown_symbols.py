"""Symbols that a model has not seen in training: warnings, and an error where there are no others."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from torch import Tensor

from fenchel.data.vocabulary import PAD, UNK
from fenchel.errors import FenchelError
from fenchel.stored_json import shortened

MOST_WARNINGS = 10


def unknown_symbol_warnings(texts: Sequence[str], unknown: Sequence[Sequence[str]]) -> list[str]:
    """One warning per text with unknown symbols, which names the text if there are several.

    >>> unknown_symbol_warnings(["walk", "fax"], [[], ["x"]])
    ["example 2 (fax): the model does not know 'x'"]
    """
    found = [(place, symbols) for place, symbols in enumerate(unknown, start=1) if symbols]
    warnings = []
    for place, symbols in found[:MOST_WARNINGS]:
        where = f"example {place} ({texts[place - 1][:40]}): " if len(texts) > 1 else ""
        warnings.append(f"{where}the model does not know {', '.join(map(symbol_name, symbols))}")
    if len(found) > MOST_WARNINGS:
        warnings.append(f"{len(found) - MOST_WARNINGS} more examples have unknown symbols")
    return warnings


def check_any_known(name: str, ids: Tensor, first: str) -> None:
    """Raise if all symbols of some texts are unknown, so that they are probably in another language.

    >>> import torch
    >>> check_any_known("texts", torch.tensor([UNK, UNK, PAD]), "λόγος")
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: texts must have symbols that the model knows, got none, as in 'λόγος'
    """
    if bool(((ids == UNK) | (ids == PAD)).all()):
        raise FenchelError(
            f"{name} must have symbols that the model knows, got none, as in {shortened(first)}"
        )


def symbol_name(symbol: str) -> str:
    """A symbol in quotes; an accent without a letter, which cannot be seen there, by its Unicode name.

    >>> symbol_name("ö"), symbol_name(chr(0x308))
    ("'ö'", 'U+0308 COMBINING DIAERESIS')
    """
    if len(symbol) == 1 and unicodedata.combining(symbol):
        return f"U+{ord(symbol):04X} {unicodedata.name(symbol, 'COMBINING MARK')}"
    return repr(symbol)
