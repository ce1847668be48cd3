"""Characters that steer a terminal or break a line, by their Unicode properties."""

from __future__ import annotations

import unicodedata

BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def unsafe(text: str) -> set[str]:
    return {
        char
        for char in text
        if char not in "\t\n"
        and (
            unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
            or unicodedata.bidirectional(char) in BIDI
        )
    }
