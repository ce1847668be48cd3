"""Examples as tensors: a whole data set in a few of them, and batches gathered from these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from fenchel.data.ragged import Ragged
from fenchel.errors import FenchelError
from fenchel.stored_json import shortened
from fenchel.tasks.sequences.example import Example

if TYPE_CHECKING:
    from fenchel.tasks.sequences.codec import Codec


class Batch(NamedTuple):
    """Some examples, padded with PAD to the longest of them.

    Attributes:
        source: (B, S) int64.
        source_lengths: (B,) int64, on the CPU, as `pack_padded_sequence` requires.
        target: (B, T) int64, every row with EOS at its end; T is 0 for examples without targets.
        index: (B,) int64, the places of the examples in their data set.
    """

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    index: Tensor


class SequencePairs:
    """A whole data set as tensors, from which a batch is gathered without a loop over tokens.

    >>> from fenchel.tasks.sequences.codec import Codec
    >>> codec = Codec.fit([Example("ab", "ba"), Example("abc", "c")])
    >>> data = SequencePairs.of([Example("abc", "ba"), Example("b", "c")], codec)
    >>> data.batch(torch.tensor([1, 0])).source.tolist()
    [[5, 0, 0], [4, 5, 6]]
    """

    def __init__(self, source: Ragged, target: Ragged) -> None:
        self.source = source
        self.target = target

    @classmethod
    def of(cls, examples: Sequence[Example], codec: Codec) -> SequencePairs:
        """Encode examples that all have a target, or all have none."""
        sources = codec.encode_sources(examples)
        for place, (symbols, example) in enumerate(zip(sources, examples, strict=True)):
            if not symbols:
                got = f"{example.source!r} (number {place + 1})"
                raise FenchelError(f"every source must have at least one symbol, got {got}")
        if all(example.target is None for example in examples):
            targets: list[list[int]] = [[] for _ in examples]
        else:
            targets = codec.encode_targets(examples)
        return cls(Ragged(sources), Ragged(targets))

    def __len__(self) -> int:
        return len(self.source.lengths)

    @property
    def lengths(self) -> Tensor:
        """The lengths of source and target, (N, 2)."""
        return torch.stack([self.source.lengths, self.target.lengths], 1)

    def tensors(self) -> tuple[Tensor, ...]:
        """Values and lengths of the sources and the targets."""
        rows = (self.source, self.target)
        return tuple(part for each in rows for part in (each.values, each.lengths))

    def batch(self, index: Tensor | Sequence[int]) -> Batch:
        """The examples at `index` (B,), in this order."""
        index = torch.as_tensor(index, dtype=torch.int64, device="cpu")
        lengths = self.source.lengths.index_select(0, index)
        return Batch(self.source.padded(index), lengths, self.target.padded(index), index)

    def to(self, device: torch.device | str) -> SequencePairs:
        """The same data set with its symbols on `device`, where batches are then gathered."""
        return SequencePairs(self.source.to(device), self.target.to(device))


def check_lengths(data: SequencePairs, examples: Sequence[Example], config: Any) -> None:
    """Raise if a sequence has more symbols than `max_positions` of the model's configuration, if any."""
    longest = getattr(config, "max_positions", None)
    if longest is None:
        return
    for name, lengths in (("source", data.source.lengths), ("target", data.target.lengths)):
        if int(lengths.max()) > longest:
            place = int(lengths.argmax())
            text = shortened(getattr(examples[place], name))
            raise FenchelError(
                f"a {name} must have at most max_positions = {longest} symbols, "
                f"got {int(lengths[place])} in example {place + 1}: {text}"
            )
