"""Which examples make a batch: some of similar length, in an order that the seed decides."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fenchel.data.encoded import Encoded
from fenchel.errors import rule


class LengthBuckets:
    """Batches of examples of similar length; each example is in one batch an epoch.

    An epoch is shuffled, then sorted by length within stretches of `pool` batches, cut into batches,
    and these are shuffled. The result depends on the seed and the number of the epoch alone.

    Several processes share an epoch: process `rank` of `world` gets its part, all get equally many
    batches (a few are halved for that), and batches of one step are of similar length.

    >>> from fenchel.data.ragged import Ragged
    >>> lengths = Ragged([[4] * (1 + place % 5) for place in range(10)])
    >>> buckets = LengthBuckets(Encoded(lengths, lengths), batch_size=4, shuffle=False)
    >>> [batch.tolist() for batch in buckets.batches(epoch=0)]
    [[0, 5, 1, 6], [2, 7, 3, 8], [4, 9]]

    Args:
        data: The examples.
        batch_size: At most so many examples a batch.
        batch_tokens: At most so many symbols a batch, sources and targets together, padding
            included; a single longer example is a batch.
        seed: Of the order.
        rank: The number of this process.
        world: The number of processes.
        shuffle: If false, all examples are sorted by length, the same in every epoch.
        pool: The batches that are sorted together.
    """

    def __init__(
        self,
        data: Encoded,
        batch_size: int,
        *,
        batch_tokens: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
        pool: int = 100,
    ) -> None:
        positive = {
            "batch_size": batch_size,
            "batch_tokens": batch_tokens,
            "world": world,
            "pool": pool,
        }
        for name, value in positive.items():
            if value is not None and value < 1:
                raise rule(f"{name} must be positive", expected="at least 1", got=value)
        if seed < 0:
            raise rule("seed must not be negative", expected="at least 0", got=seed)
        if not 0 <= rank < world:
            raise rule("rank is one of the processes", expected=f"0 to {world - 1}", got=rank)
        if len(data) < world:
            expected = f"at least {world} examples"
            raise rule("every process has a batch", expected=expected, got=len(data))
        self._source_lengths = data.source.lengths.numpy()
        self._target_lengths = data.target.lengths.numpy()
        self.batch_size, self.batch_tokens = batch_size, batch_tokens
        self.seed, self.rank, self.world = seed, rank, world
        self.shuffle, self.pool = shuffle, pool

    def batches(self, epoch: int = 0) -> list[Tensor]:
        """The batches of this process in an epoch: the places of their examples, int64."""
        generator = np.random.default_rng((self.seed, epoch))
        order = self._order(generator)
        cuts = _divisible(self._cuts(order), self.world)
        steps = np.arange(0, len(cuts) - 1, self.world)
        if self.shuffle:
            generator.shuffle(steps)
        mine = torch.from_numpy(order)
        return [mine[cuts[step + self.rank] : cuts[step + self.rank + 1]] for step in steps]

    def _order(self, generator: np.random.Generator) -> np.ndarray:
        count = len(self._source_lengths)
        if not self.shuffle:
            return np.lexsort((self._source_lengths, self._target_lengths))
        order = generator.permutation(count)
        pool = np.arange(count) // (self.pool * self.batch_size)
        keys = (self._source_lengths[order], self._target_lengths[order], pool)
        return order[np.lexsort(keys)]

    def _cuts(self, order: np.ndarray) -> list[int]:
        """Where batches begin in the sorted examples, and the end."""
        if self.batch_tokens is None:
            return [*range(0, len(order), self.batch_size), len(order)]
        sources = self._source_lengths[order].tolist()
        targets = self._target_lengths[order].tolist()
        cuts, widest_source, widest_target = [0], 0, 0
        for place, (source, target) in enumerate(zip(sources, targets, strict=True)):
            widest_source, widest_target = max(widest_source, source), max(widest_target, target)
            size = place + 1 - cuts[-1]
            tokens = size * (widest_source + widest_target)
            if size > 1 and (size > self.batch_size or tokens > self.batch_tokens):
                cuts.append(place)
                widest_source, widest_target = source, target
        return [*cuts, len(order)]


def _divisible(cuts: list[int], world: int) -> list[int]:
    """The cuts of a number of batches that `world` divides: the largest batches are halved.

    Where all batches have one example and their number is still not right, some pairs are joined.
    """
    while rest := (len(cuts) - 1) % world:
        sizes = np.diff(cuts)
        largest = int(np.argmax(sizes))
        if sizes[largest] > 1:
            cuts.insert(largest + 1, (cuts[largest] + cuts[largest + 1] + 1) // 2)
        else:
            del cuts[1 : 2 * rest : 2]
    return cuts
