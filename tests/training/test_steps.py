"""The steps of training, segment by segment."""

from __future__ import annotations

import pytest
import torch

from fenchel.training import TrainingConfig
from fenchel.training.progress import Progress
from fenchel.training.steps import Steps
from tests.training.small import CODEC, TRAIN

DATA = CODEC.encode(TRAIN)


@pytest.mark.parametrize("every", [None, 1, 4, 5, 100])
def test_segments_partition_every_epoch(every: int | None):
    config = TrainingConfig(batch_size=8, checkpoint_every=every)
    progress, found, ends = Progress(), [], []
    steps = Steps(DATA, config, progress)
    for _ in range(2 * steps.segments_per_epoch):
        part = list(steps)
        assert len(part) <= (every or steps.per_epoch)
        found.extend(part)
        ends.append(steps.ends_epoch)
        progress.segments += 1
    for epoch in (0, 1):
        mine = [step for step in found if step.epoch == epoch]
        assert [step.number for step in mine] == list(range(steps.per_epoch))
        seen = torch.cat([step.batch.index for step in mine])
        assert seen.sort().values.tolist() == list(range(len(TRAIN)))
    assert ends == 2 * ([False] * (steps.segments_per_epoch - 1) + [True])


@pytest.mark.parametrize("accumulate", [2, 3, 100])
def test_the_batches_of_a_step_of_the_optimizer_are_in_one_segment(accumulate: int):
    config = TrainingConfig(batch_size=8, accumulate=accumulate, checkpoint_every=2)
    steps, parts = Steps(DATA, config, Progress()), []
    for _ in range(steps.segments_per_epoch):
        parts.append([step.number for step in steps])
        steps.progress.segments += 1
    assert [number for part in parts for number in part] == list(range(steps.per_epoch))
    assert all(part[0] % accumulate == 0 for part in parts)
    assert all(len(part) <= 2 * accumulate for part in parts)
    assert steps.updates_per_epoch == -(-steps.per_epoch // accumulate)
