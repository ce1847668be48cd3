"""Symbols and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any

from fenchel.errors import FenchelError, rule
from fenchel.schema import from_json

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """A list of symbols; the number of a symbol is its place, after four that have no text.

    >>> vocabulary = Vocabulary.build("banana")
    >>> len(vocabulary), vocabulary.ids("bat"), vocabulary.symbols([4, 5, 6, 3])
    (7, [6, 4, 3], ['a', 'n', 'b', '<unk>'])

    A text can never name one of the four: "<pad>" in a text is a symbol like any other.

    Attributes:
        PAD: Fills a batch up.
        BOS: Stands before the first target symbol.
        EOS: Ends a target.
        UNK: Stands for every symbol that is not in the vocabulary.
    """

    PAD, BOS, EOS, UNK = PAD, BOS, EOS, UNK

    def __init__(self, symbols: Iterable[str]) -> None:
        """A vocabulary of these symbols, which differ, numbered from 4 in this order."""
        own = list(symbols)
        self._names = [*SPECIAL, *own]
        self._ids = {symbol: place for place, symbol in enumerate(own, start=len(SPECIAL))}
        if len(self._ids) != len(own):
            repeated = next(symbol for symbol, count in Counter(own).items() if count > 1)
            raise FenchelError(f"symbols must be unique, got {repeated!r} more than once")

    @classmethod
    def build(
        cls, symbols: Iterable[str], min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """The vocabulary of a text: see `from_counts`."""
        return cls.from_counts(Counter(symbols), min_count, max_size)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """The symbols that occur at least `min_count` times, the most frequent first.

        At most `max_size` of them (the four special ones not counted) are kept. Symbols of equal
        frequency are in the order of their code points, so the order of the text does not matter.
        """
        if max_size is not None and max_size < 0:
            raise rule("max_size is a size", expected="at least 0, or None", got=max_size)
        kept = [symbol for symbol, count in counts.items() if count >= min_count]
        kept.sort(key=lambda symbol: (-counts[symbol], symbol))
        return cls(kept[:max_size])

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._names == other._names

    __hash__ = None  # type: ignore[assignment]

    def ids(self, symbols: Iterable[str]) -> list[int]:
        """The number of every symbol, UNK for those that are not here."""
        return list(map(self._ids.get, symbols, repeat(UNK)))

    def symbols(self, ids: Iterable[int]) -> list[str]:
        """The symbol of every number."""
        names, asked = self._names, list(ids)
        if asked and not 0 <= min(asked) <= max(asked) < len(names):
            outside = next(i for i in asked if not 0 <= i < len(names))
            expected = f"0 to {len(names) - 1}"
            raise rule("numbers are of this vocabulary", expected=expected, got=outside)
        return [names[i] for i in asked]

    def state(self) -> list[str]:
        """What `from_state` needs, as JSON can hold it."""
        return self._names[len(SPECIAL) :]

    @classmethod
    def from_state(cls, state: Any, where: str = "vocabulary") -> Vocabulary:
        """The vocabulary that had this `state`; `where` is named in errors."""
        symbols = from_json(list[str], state, where)
        try:
            return cls(symbols)
        except FenchelError as error:
            raise FenchelError(f"{where}: {error}") from error
