"""Batches of examples of similar length, in an order that depends on the seed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fenchel.checks import check_count
from fenchel.data.dataset import Dataset
from fenchel.errors import FenchelError


class LengthBuckets:
    """Batches of examples of similar length; each example is in one batch per epoch.

    An epoch is shuffled, then sorted by length within stretches of `pool` batches, cut into batches,
    and these are shuffled. The result depends on the seed and the number of the epoch alone.

    Several processes share an epoch: process `rank` of `world` gets its part, all get equally many
    batches (a few are halved for that), and batches of one step are of similar length.

    >>> class Words:
    ...     lengths = torch.tensor([[1 + place % 5] for place in range(10)])
    ...     def __len__(self):
    ...         return 10
    >>> buckets = LengthBuckets(Words(), batch_size=4, shuffle=False)
    >>> [batch.tolist() for batch in buckets.batches(epoch=0)]
    [[0, 5, 1, 6], [2, 7, 3, 8], [4, 9]]

    Args:
        data: The examples.
        batch_size: Maximum number of examples per batch.
        batch_tokens: Maximum number of symbols per batch, summed over the padded parts of an example
            (such as source and target), padding included. A single longer example is a batch.
        seed: Random seed of the order.
        rank: Index of this process.
        world: Number of processes.
        shuffle: If false, all examples are sorted by length, the same in every epoch.
        pool: Number of batches that are sorted together.
    """

    def __init__(
        self,
        data: Dataset,
        batch_size: int,
        *,
        batch_tokens: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
        pool: int = 100,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("world", world), ("pool", pool)):
            check_count(value, name)
        if batch_tokens is not None:
            check_count(batch_tokens, "batch_tokens")
        check_count(seed, "seed", least=0)
        if not 0 <= rank < world:
            raise FenchelError(f"rank must be from 0 to {world - 1}, got {rank}")
        if len(data) < world:
            raise FenchelError(
                f"{world} processes require at least {world} examples, got {len(data)}"
            )
        self._lengths = data.lengths.numpy()
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
        count = len(self._lengths)
        if not self.shuffle:
            return np.lexsort(tuple(self._lengths.T))
        order = generator.permutation(count)
        pool = np.arange(count) // (self.pool * self.batch_size)
        return order[np.lexsort((*self._lengths[order].T, pool))]

    def _cuts(self, order: np.ndarray) -> list[int]:
        """Where batches begin in the sorted examples, and the end."""
        if self.batch_tokens is None:
            return [*range(0, len(order), self.batch_size), len(order)]
        cuts, widest = [0], np.zeros(self._lengths.shape[1], np.int64)
        for place, lengths in enumerate(self._lengths[order]):
            widest = np.maximum(widest, lengths)
            size = place + 1 - cuts[-1]
            if size > 1 and (size > self.batch_size or size * widest.sum() > self.batch_tokens):
                cuts.append(place)
                widest = lengths
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
