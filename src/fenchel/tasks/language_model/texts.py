"""Plain text for language models: lines to numbers, in lines or in blocks of running text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple, Self, final

import torch
from torch import Tensor

from fenchel.data.bad_items import BadItems
from fenchel.data.lines import read_lines
from fenchel.data.ragged import Ragged
from fenchel.data.segmentation import (
    Characters,
    Normalization,
    Segmentation,
    StoredSegmentation,
    check_normalization,
    learn,
    normalized,
)
from fenchel.data.vocabulary import BOS, EOS, PAD, Vocabulary
from fenchel.settings import from_json


class LanguageModelBatch(NamedTuple):
    """Texts padded with PAD to the longest of them.

    Attributes:
        tokens: (B, T) int64.
        lengths: (B,) int64, on the CPU.
    """

    tokens: Tensor
    lengths: Tensor


def iterate_texts(
    path: str | PurePath, *, keep_blank: bool = False, bad: BadItems | None = None
) -> Iterator[str | None]:
    """The lines of a file; blank lines are left out, or None with `keep_blank`."""
    for _, line in read_lines(path, bad):
        if line:
            yield line
        elif keep_blank:
            yield None


@final
@dataclass(frozen=True)
class LanguageModelProcessor:
    """Texts to numbers and back.

    A text ends with EOS. With a block size, all texts are one sequence, which is cut into blocks of that
    many symbols.

    >>> texts = ["a cat", "a hat"]
    >>> processor = LanguageModelProcessor.fit(texts, segmentation="words")
    >>> processor.symbols("a hat"), processor.continued("a", processor.ids("hat"))
    (['a', 'hat'], 'a hat')
    >>> processor.encode(texts).batch(torch.tensor([0, 1])).tokens.tolist()
    [[4, 5, 2], [4, 6, 2]]
    """

    vocabulary: Vocabulary
    segmentation: Segmentation
    normalization: Normalization = "NFC"
    block_size: int | None = None

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        *,
        segmentation: str = "subwords",
        merges: int = 8000,
        min_count: int = 1,
        normalization: Normalization = "NFC",
        block_size: int | None = None,
    ) -> Self:
        """The processor of a training set.

        Args:
            texts: The texts.
            segmentation: "characters", "words" or "subwords".
            merges: Number of merges learned for "subwords".
            min_count: Symbols that occur less often are unknown.
            normalization: Unicode normal form of the texts.
            block_size: Number of symbols per block, or None.
        """
        check_normalization(normalization)
        spelled = [normalized(text, normalization) for text in texts]
        learned = learn(segmentation, spelled, merges)
        counts = Counter(chain.from_iterable(learned.split_all(spelled)))
        return cls(Vocabulary.from_counts(counts, min_count), learned, normalization, block_size)

    def symbols(self, text: str) -> list[str]:
        """The symbols of a text."""
        return self.segmentation.split(normalized(text, self.normalization))

    def ids(self, text: str) -> list[int]:
        """The numbers of the symbols of a text; UNK for symbols that are unknown."""
        return self.vocabulary.ids(self.symbols(text))

    def continued(self, text: str, ids: Sequence[int]) -> str:
        """A text and the symbols of numbers after it, without PAD, BOS and EOS."""
        kept = [number for number in ids if number not in (PAD, BOS, EOS)]
        return self.segmentation.join([*self.symbols(text), *self.vocabulary.symbols(kept)])

    def unknown(self, text: str) -> list[str]:
        """The symbols of a text that the model does not know, each once."""
        return list(dict.fromkeys(s for s in self.symbols(text) if s not in self.vocabulary))

    @property
    def separator(self) -> str:
        """What stands between symbols that are shown one by one."""
        return "" if isinstance(self.segmentation, Characters) else " "

    def encode(self, examples: Sequence[str]) -> LanguageModelData:
        """Texts as tensors."""
        spelled = [normalized(text, self.normalization) for text in examples]
        split = self.segmentation.split_all(spelled)
        rows = [[*self.vocabulary.ids(symbols), EOS] for symbols in split]
        if self.block_size is not None:
            running, size = list(chain.from_iterable(rows)), self.block_size
            rows = [running[start : start + size] for start in range(0, len(running), size)]
        return LanguageModelData(Ragged(rows))

    def state(self) -> dict[str, Any]:
        """The processor as JSON."""
        return {
            "vocabulary": self.vocabulary.state(),
            "segmentation": self.segmentation.state(),
            "normalization": self.normalization,
            "block_size": self.block_size,
        }

    @classmethod
    def from_state(cls, state: Any, where: str) -> Self:
        """The processor with this `state`; `where` names its file in errors."""
        stored = from_json(_StoredProcessor, state, where)
        vocabulary = Vocabulary.from_state(stored.vocabulary, f"{where}: vocabulary")
        segmentation = stored.segmentation.restore(f"{where}: segmentation")
        return cls(vocabulary, segmentation, stored.normalization, stored.block_size)


@dataclass(frozen=True)
class _StoredProcessor:
    vocabulary: list[str]
    segmentation: StoredSegmentation
    normalization: Normalization
    block_size: int | None


@final
class LanguageModelData:
    """Texts or blocks as tensors, from which batches are gathered."""

    def __init__(self, rows: Ragged) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows.lengths)

    @property
    def lengths(self) -> Tensor:
        """The numbers of symbols, (N, 1)."""
        return self.rows.lengths.unsqueeze(1)

    def batch(self, index: Tensor) -> LanguageModelBatch:
        """The texts at `index` (B,)."""
        return LanguageModelBatch(self.rows.padded(index), self.rows.lengths.index_select(0, index))

    def to(self, device: torch.device | str) -> LanguageModelData:
        """The same texts on `device`."""
        return LanguageModelData(self.rows.to(device))

    def tensors(self) -> tuple[Tensor, ...]:
        """Symbols and lengths."""
        return self.rows.values, self.rows.lengths
