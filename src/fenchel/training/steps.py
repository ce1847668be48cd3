"""The batches of a segment of training, in order, starting from any checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fenchel.data.batches import LengthBuckets
from fenchel.data.dataset import Dataset
from fenchel.training.config import TrainingConfig
from fenchel.training.progress import Progress


class Step(NamedTuple):
    """A batch with its epoch, its index in the epoch, and the number of batches in the epoch."""

    batch: Any
    epoch: int
    number: int
    count: int


class Steps:
    """An iterable over the batches of the next segment, whose number is `progress.segments`.

    The optimizer takes a step after every `accumulate` batches of an epoch, and after its last batch. An
    epoch is cut into segments of equal numbers of these steps, at most `checkpoint_every` in the first
    epoch. The boundaries of segments depend only on the data and the configuration.

    Attributes:
        per_epoch: Number of batches in the first epoch.
        updates_per_epoch: Number of steps of the optimizer in the first epoch.
    """

    def __init__(self, data: Dataset, config: TrainingConfig, progress: Progress) -> None:
        self.data, self.config, self.progress = data, config, progress
        self.place("cpu", rank=0, world=1)

    def place(self, device: torch.device | str, *, rank: int, world: int) -> None:
        """Move the data to a device and keep the share of process `rank` of `world`."""
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
        self.per_epoch = len(self.buckets.batches(0))
        self.updates_per_epoch = -(-self.per_epoch // config.accumulate)
        every = config.checkpoint_every or self.updates_per_epoch
        self.segments_per_epoch = -(-self.updates_per_epoch // every)

    @property
    def epoch(self) -> int:
        """The epoch of the segment."""
        return self.progress.segments // self.segments_per_epoch

    @property
    def ends_epoch(self) -> bool:
        """Whether the segment is the last of its epoch."""
        return (self.progress.segments + 1) % self.segments_per_epoch == 0

    def __iter__(self) -> Iterator[Step]:
        epoch, part = divmod(self.progress.segments, self.segments_per_epoch)
        batches: list[Tensor] = self.buckets.batches(epoch)
        count, size = len(batches), self.config.accumulate
        updates = -(-count // size)
        begin, end = (updates * (part + k) // self.segments_per_epoch for k in (0, 1))
        for number in range(begin * size, min(end * size, count)):
            yield Step(self.data.batch(batches[number]), epoch, number, count)
