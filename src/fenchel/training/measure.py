"""Loss, accuracy and supports on a data set, with the targets given."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from fenchel.data.batches import LengthBuckets
from fenchel.data.encoded import Encoded
from fenchel.models.seq2seq import Seq2Seq, Statistics
from fenchel.training.progress import Record
from fenchel.training.sizes import AtOnce, told_at_once


@torch.no_grad()
def sums(
    model: Seq2Seq,
    data: Encoded,
    batch_size: int | None = None,
    *,
    rank: int = 0,
    world: int = 1,
    context: Any = None,
) -> Tensor:
    """The stacked `Statistics` of this process's part of `data`, without dropout.

    `batch_size` is the number of examples at once; as many as suit the device, unless given.
    """
    was_training = model.training
    model.eval()
    total: Tensor | None = None
    size = told_at_once(data.source.values.device, model.config.target_size)
    if batch_size is not None:
        size = AtOnce(batch_size, None)
    buckets = LengthBuckets(
        data, size.sentences, batch_tokens=size.symbols, rank=rank, world=world, shuffle=False
    )
    for index in buckets.batches():
        with nullcontext() if context is None else context():
            _, statistics = model.loss(data.batch(index))
        total = statistics.stacked() if total is None else total + statistics.stacked()
    model.train(was_training)
    if total is None:
        return torch.zeros(len(Statistics._fields))
    return total


def measure(model: Seq2Seq, data: Encoded, batch_size: int | None = None) -> Record:
    """Means over a data set: loss, accuracy (tokens), exact (sequences), both mean supports.

    `exact` is the accuracy of greedy search: it finds a target if every token of the target is the
    most probable one after the tokens before it.
    """
    return Statistics.of(sums(model, data, batch_size)).means()
