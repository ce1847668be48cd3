"""The validation metrics of a model on a data set."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from fenchel.data.batches import LengthBuckets
from fenchel.data.dataset import Dataset
from fenchel.models.means import read_means, stack_means
from fenchel.training.task import Task


@torch.no_grad()
def validation_sums(
    task: Task,
    model: Any,
    data: Dataset,
    batch_size: int | None = None,
    *,
    rank: int = 0,
    world: int = 1,
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> tuple[list[str], Tensor]:
    """Names, and the sums and counts (K, 2), of the share of `data` of process `rank` of `world`.

    Args:
        task: Chooses the batch size by the device.
        model: A model of the task.
        data: On the device of the model.
        batch_size: Number of examples per batch, instead of the task's choice.
        rank, world: The process and the number of processes.
        context: Wraps every forward pass, for autocast.
    """
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    size, symbols = task.validation_batch(device.type)
    if batch_size is not None:
        size, symbols = batch_size, None
    buckets = LengthBuckets(data, size, batch_tokens=symbols, rank=rank, world=world, shuffle=False)
    names: list[str] = []
    total: Any = 0
    for index in buckets.batches():
        with context():
            means = model.loss(data.batch(index))
        names, total = list(means), total + stack_means(means)
    model.train(was_training)
    return names, total


def validate(
    task: Task, model: Any, data: Dataset, batch_size: int | None = None
) -> dict[str, float]:
    """The validation metrics of a model of the task on a data set."""
    return read_means(*validation_sums(task, model, data, batch_size))
