"""Vocabulary: symbols and their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any

from fenchel.checks import check_count
from fenchel.errors import FenchelError
from fenchel.settings import from_json

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """A list of symbols, numbered from 4 on; the ids 0 to 3 are special symbols.

    >>> vocabulary = Vocabulary.build("banana")
    >>> len(vocabulary), vocabulary.ids("bat"), vocabulary.symbols([4, 5, 6, 3])
    (7, [6, 4, 3], ['a', 'n', 'b', '<unk>'])

    No text contains a special symbol: "<pad>" in a text is a symbol like any other.

    Args:
        symbols: The symbols, which must be unique.

    Attributes:
        PAD: Padding of a batch.
        BOS: The symbol before the first target symbol.
        EOS: The end of a target.
        UNK: Any symbol that is not in the vocabulary.
    """

    PAD, BOS, EOS, UNK = PAD, BOS, EOS, UNK

    def __init__(self, symbols: Iterable[str]) -> None:
        own = list(symbols)
        self._names = [*SPECIAL, *own]
        self._ids = {symbol: i for i, symbol in enumerate(own, start=len(SPECIAL))}
        if len(self._ids) != len(own):
            repeated = next(symbol for symbol, count in Counter(own).items() if count > 1)
            raise FenchelError(f"symbols must be unique, got {repeated!r} more than once")

    @classmethod
    def build(
        cls, symbols: Iterable[str], min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """Build the vocabulary of a text: see `from_counts`."""
        return cls.from_counts(Counter(symbols), min_count, max_size)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """Build a vocabulary of symbols ordered by frequency, the most frequent first.

        Symbols of equal frequency are ordered by code points, so the order of the text does not
        matter.

        Args:
            counts: The frequency of each symbol.
            min_count: Symbols that are less frequent are left out.
            max_size: The maximum number of symbols, without the four special ones.
        """
        if max_size is not None:
            check_count(max_size, "max_size", least=0)
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
        """Return the id of each symbol, UNK for symbols that are not in the vocabulary."""
        return list(map(self._ids.get, symbols, repeat(UNK)))

    def symbols(self, ids: Iterable[int]) -> list[str]:
        """Return the symbol of each id."""
        names, ids = self._names, list(ids)
        if ids and not 0 <= min(ids) <= max(ids) < len(names):
            invalid = next(i for i in ids if not 0 <= i < len(names))
            raise FenchelError(f"ids must be between 0 and {len(names) - 1}, got {invalid}")
        return [names[i] for i in ids]

    def state(self) -> list[str]:
        """Return the symbols, which can be stored as JSON, for `from_state`."""
        return self._names[len(SPECIAL) :]

    @classmethod
    def from_state(cls, state: Any, where: str = "vocabulary") -> Vocabulary:
        """Restore a vocabulary from its `state`; `where` is named in errors."""
        symbols = from_json(list[str], state, where)
        try:
            return cls(symbols)
        except FenchelError as error:
            raise FenchelError(f"{where}: {error}") from error
