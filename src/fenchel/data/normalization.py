"""One spelling for one letter: in Unicode an é is one symbol, or an e with an accent after it.

Both look the same, and which of them a file has depends on the program that wrote it.
"""

from __future__ import annotations

import unicodedata
from typing import Literal, get_args

from fenchel.errors import rule

Normalization = Literal["none", "NFC", "NFD", "NFKC", "NFKD"]
FORMS: tuple[Normalization, ...] = get_args(Normalization)


def normalized(text: str, form: Normalization) -> str:
    """The text in a normal form of Unicode; "none" leaves it as it is.

    >>> [len(normalized(text, "NFC")) for text in ("é", "e" + chr(0x301))]
    [1, 1]
    """
    return text if form == "none" else unicodedata.normalize(form, text)


def check_normalization(form: str) -> None:
    """Refuse what is no normal form."""
    if form not in FORMS:
        expected = " or ".join(FORMS)
        raise rule("there is no such normal form of Unicode", expected=expected, got=repr(form))
