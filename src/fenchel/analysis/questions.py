"""Interrogative words and question marks among the tokens of a sentence."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from fenchel.errors import unknown

QUESTION_MARKS = {"?", "？", "؟"}
INTERROGATIVES = {
    "de": "wer wen wem wessen was wo wohin woher wann warum weshalb wieso wie welche welcher welches "
    "welchen welchem wieviel wieviele",
    "en": "who whom whose what which where when why how",
    "fr": "qui que quoi quel quelle quels quelles où quand comment pourquoi combien lequel laquelle",
    "ja": "何 なに なん 誰 だれ 何処 どこ いつ 何時 なぜ 何故 どう どの どれ どんな どちら いくら いくつ",
}
"""Interrogative words by language."""


def interrogative_words(words: str | Collection[str]) -> frozenset[str]:
    """The interrogative words of a language, or the words given.

    >>> sorted(interrogative_words("en"))[:3]
    ['how', 'what', 'when']
    """
    if not isinstance(words, str):
        return frozenset(word.lower() for word in words)
    if words not in INTERROGATIVES:
        raise unknown("language of interrogative words", words, INTERROGATIVES)
    return frozenset(INTERROGATIVES[words].split())


@lru_cache(maxsize=2**16)
def word_of(token: str) -> str:
    """A token in lower case, without the marks by which tokenizers tell the parts of words.

    >>> [word_of(token) for token in ("▁What", "Ġwhat", "##at", "wha@@")]
    ['what', 'what', 'at', 'wha']
    """
    return token.lstrip("▁Ġ").removeprefix("##").removesuffix("@@").removesuffix("</w>").lower()
