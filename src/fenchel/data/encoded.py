"""Examples as tensors: a whole data set in a few of them, and batches gathered from these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.data.codec import Codec
from fenchel.data.example import Example
from fenchel.data.ragged import Ragged
from fenchel.errors import rule


class Batch(NamedTuple):
    """Some examples, padded with PAD to the longest of them.

    Attributes:
        source: (B, S) int64.
        source_lengths: (B,) int64, on the CPU, where packing wants them.
        target: (B, T) int64, every row with EOS at its end; T is 0 for examples without targets.
        index: (B,) int64, the places of the examples in their data set.
    """

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    index: Tensor


class Encoded:
    """A whole data set as tensors, from which a batch is gathered without a loop over tokens.

    >>> codec = Codec.fit([Example("ab", "ba"), Example("abc", "c")])
    >>> data = Encoded.of([Example("abc", "ba"), Example("b", "c")], codec)
    >>> data.batch(torch.tensor([1, 0])).source.tolist()
    [[5, 0, 0], [4, 5, 6]]
    """

    def __init__(self, source: Ragged, target: Ragged) -> None:
        self.source = source
        self.target = target

    @classmethod
    def of(cls, examples: Sequence[Example], codec: Codec) -> Encoded:
        """Encode examples that all have a target, or all have none."""
        sources = codec.encode_sources(examples)
        for place, (symbols, example) in enumerate(zip(sources, examples, strict=True)):
            if not symbols:
                got = f"{example.source!r} (number {place + 1})"
                raise rule("a source has symbols", expected="at least one", got=got)
        if all(example.target is None for example in examples):
            targets: list[list[int]] = [[] for _ in examples]
        else:
            targets = codec.encode_targets(examples)
        return cls(Ragged(sources), Ragged(targets))

    def __len__(self) -> int:
        return len(self.source.lengths)

    def batch(self, index: Tensor | Sequence[int]) -> Batch:
        """The examples at `index` (B,), in this order."""
        index = torch.as_tensor(index, dtype=torch.int64, device="cpu")
        lengths = self.source.lengths.index_select(0, index)
        return Batch(self.source.padded(index), lengths, self.target.padded(index), index)

    def to(self, device: torch.device | str) -> Encoded:
        """The same data set with its symbols on `device`, where batches are then gathered."""
        return Encoded(self.source.to(device), self.target.to(device))
