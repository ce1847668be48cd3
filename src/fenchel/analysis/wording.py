"""Examples and proofs in the words of a person."""

from __future__ import annotations

import unicodedata

from fenchel.data import Codec, Example
from fenchel.search import Answer

SENTENCES = {
    "only": "all probability is on this answer",
    "complete": "all answers of non-zero probability",
    "best": "no answer is more probable",
    "unproven": "there may be a more probable answer",
}


def proof(answer: Answer, rank: int = 0) -> str:
    """What a search has proven of its answer number `rank`, as the word that `SENTENCES` explains."""
    if answer.single:
        return "only"
    if answer.complete:
        return "complete"
    as_good = answer.hypotheses[rank].probability == answer.best.probability
    return "best" if answer.certified and as_good else "unproven"


def asked(example: Example, codec: Codec) -> str:
    """What was asked, as a person would write it.

    >>> codec = Codec.fit([Example("draw", "drew", ("V", "PST"))])
    >>> asked(Example("walk", None, ("english", "V", "PST"), "english"), codec)
    'walk V;PST'
    """
    return " ".join(part for part in (example.source, ";".join(codec.tags(example))) if part)


def named(symbol: str) -> str:
    """A symbol in quotes; an accent without its letter, which cannot be seen there, by its name.

    >>> named("ö"), named(chr(0x308))
    ("'ö'", 'U+0308 COMBINING DIAERESIS')
    """
    if len(symbol) == 1 and unicodedata.combining(symbol):
        return f"U+{ord(symbol):04X} {unicodedata.name(symbol, 'COMBINING MARK')}"
    return repr(symbol)
