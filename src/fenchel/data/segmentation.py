"""How a text is cut into symbols and put together again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from fenchel.data.subwords import Subwords
from fenchel.errors import FenchelError, rule


class Segmentation(Protocol):
    """Texts to symbols and back: `join(split(text))` is `text`, up to its white space."""

    def split(self, text: str) -> list[str]:
        """The symbols of a text."""
        ...

    def split_all(self, texts: list[str]) -> list[list[str]]:
        """The symbols of many texts, which some segmentations find faster than one by one."""
        ...

    def join(self, symbols: list[str]) -> str:
        """The text of the symbols."""
        ...

    def state(self) -> dict[str, Any]:
        """What `StoredSegmentation` reads, as JSON can hold it."""
        ...


class Characters:
    """Every character is a symbol.

    >>> Characters().split("señal")
    ['s', 'e', 'ñ', 'a', 'l']
    """

    def split(self, text: str) -> list[str]:
        return list(text)

    def split_all(self, texts: list[str]) -> list[list[str]]:
        return [list(text) for text in texts]

    def join(self, symbols: list[str]) -> str:
        return "".join(symbols)

    def state(self) -> dict[str, Any]:
        return {"kind": "characters"}


class Words:
    """What stands between white space is a symbol: for text that is tokenised already.

    >>> Words().split("a b, c")
    ['a', 'b,', 'c']
    """

    def split(self, text: str) -> list[str]:
        return text.split()

    def split_all(self, texts: list[str]) -> list[list[str]]:
        return [text.split() for text in texts]

    def join(self, symbols: list[str]) -> str:
        return " ".join(symbols)

    def state(self) -> dict[str, Any]:
        return {"kind": "words"}


Kind = Literal["characters", "words", "subwords"]


def learn(kind: str, texts: list[str], merges: int) -> Segmentation:
    """The segmentation of a kind: characters, words, or subwords learned from these texts."""
    if kind == "subwords":
        return Subwords.train(texts, merges)
    return _fixed(kind)


@dataclass(frozen=True)
class StoredSegmentation:
    """The `state` of a segmentation; `tokenizer` is that of subwords."""

    kind: Kind
    tokenizer: str | None = None

    def restore(self, where: str) -> Segmentation:
        """The segmentation that had this state; `where` is named in errors."""
        if self.kind != "subwords":
            return _fixed(self.kind)
        if self.tokenizer is None:
            raise FenchelError(f"{where} must have the key 'tokenizer'")
        return Subwords.from_text(self.tokenizer, f"{where}.tokenizer")


def _fixed(kind: str) -> Segmentation:
    if kind == "characters":
        return Characters()
    if kind == "words":
        return Words()
    expected = " or ".join(get_args(Kind))
    raise rule("there is no such segmentation", expected=expected, got=repr(kind))
