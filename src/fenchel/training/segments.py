"""The batches of training in the order of steps, from any checkpoint on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.data.batches import LengthBuckets
from fenchel.data.encoded import Batch, Encoded
from fenchel.training.config import TrainingConfig
from fenchel.training.progress import Progress


class Step(NamedTuple):
    """A batch and its place: the epoch, the number of the batch in it, and out of how many."""

    batch: Batch
    epoch: int
    number: int
    count: int


class Segments:
    """Iterating gives the steps of the segment that `progress` has come to.

    An epoch is cut into equally many segments, as short as `checkpoint_every` asks of the first
    epoch. Where a segment begins and ends depends on nothing but the data and the configuration.
    """

    def __init__(self, data: Encoded, config: TrainingConfig, progress: Progress) -> None:
        self.data, self.config, self.progress = data, config, progress
        self.place("cpu", rank=0, world=1)

    def place(self, device: torch.device | str, *, rank: int, world: int) -> None:
        """Give process `rank` of `world` its part, on its device."""
        config = self.config
        self.data = self.data.to(device)
        self.buckets = LengthBuckets(
            self.data,
            config.batch_size,
            batch_tokens=config.batch_tokens,
            seed=config.seed,
            rank=rank,
            world=world,
        )
        self.steps_an_epoch = len(self.buckets.batches(0))
        every = config.checkpoint_every or self.steps_an_epoch
        self.an_epoch = -(-self.steps_an_epoch // every)

    @property
    def epoch(self) -> int:
        """The epoch of the segment."""
        return self.progress.segments // self.an_epoch

    @property
    def ends_epoch(self) -> bool:
        """Whether the segment is the last of its epoch."""
        return (self.progress.segments + 1) % self.an_epoch == 0

    def __iter__(self) -> Iterator[Step]:
        epoch, part = divmod(self.progress.segments, self.an_epoch)
        batches: list[Tensor] = self.buckets.batches(epoch)
        count = len(batches)
        begin, end = (count * (part + offset) // self.an_epoch for offset in (0, 1))
        for number in range(begin, end):
            yield Step(self.data.batch(batches[number]), epoch, number, count)
