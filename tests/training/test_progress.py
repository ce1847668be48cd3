"""Schedules, segments and patience: pure bookkeeping, without a model."""

from __future__ import annotations

import pytest
import torch

from fenchel import FenchelError
from fenchel.data.encoded import Encoded
from fenchel.training import TrainingConfig
from fenchel.training.progress import Progress, learning_rate
from fenchel.training.segments import Segments
from tests.training.small import CODEC, TRAIN

DATA = Encoded.of(TRAIN, CODEC)


def _record(loss: float, accuracy: float = 0.5) -> dict[str, float]:
    return {"epoch": 1, "loss": loss, "accuracy": accuracy, "exact": accuracy}


def test_the_rate_is_halved_whenever_the_loss_has_risen():
    config, progress, rates = TrainingConfig(learning_rate=1.0), Progress(), []
    for loss in (3.0, 2.0, 2.5, 2.6, 1.0):
        progress.judge(_record(loss), config)
        rates.append(learning_rate(config, progress, 0, 0))
    assert rates == [1, 1, 0.5, 0.25, 0.25]


def test_the_cosine_does_not_halve_and_warmup_rises():
    config = TrainingConfig(learning_rate=1.0, schedule="cosine", epochs=4, warmup_steps=10)
    progress = Progress()
    for loss in (1.0, 2.0):
        progress.judge(_record(loss), config)
    assert [learning_rate(config, progress, step, 0) for step in (0, 4, 9, 10)] == [0.1, 0.5, 1, 1]
    assert learning_rate(config, progress, 20, 2) == pytest.approx(0.5)


@pytest.mark.parametrize(("monitor", "best"), [("accuracy", 1), ("loss", 2)])
def test_the_monitor_chooses_the_best(monitor: str, best: int):
    config, progress = TrainingConfig(monitor=monitor, patience=2), Progress()
    records = [_record(3, 0.1), _record(2, 0.9), _record(1, 0.3)]
    improved = [progress.judge(record, config) for record in records]
    assert progress.best == best
    assert improved == [True, True, best == 2]
    assert not progress.out_of_patience(config)
    progress.judge(_record(9, 0.0), config)
    assert progress.out_of_patience(config) == (best == 1)


@pytest.mark.parametrize("every", [None, 1, 4, 5, 100])
def test_the_segments_of_an_epoch_are_the_epoch(every: int | None):
    config = TrainingConfig(batch_size=8, checkpoint_every=every)
    progress, steps = Progress(), []
    segments = Segments(DATA, config, progress)
    ends = []
    for _ in range(2 * segments.an_epoch):
        part = list(segments)
        assert len(part) <= (every or segments.steps_an_epoch)
        steps.extend(part)
        ends.append(segments.ends_epoch)
        progress.segments += 1
    for epoch in (0, 1):
        mine = [step for step in steps if step.epoch == epoch]
        assert [step.number for step in mine] == list(range(segments.steps_an_epoch))
        seen = torch.cat([step.batch.index for step in mine])
        assert seen.sort().values.tolist() == list(range(len(TRAIN)))
    assert ends == 2 * ([False] * (segments.an_epoch - 1) + [True])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epochs": 0}, "epochs is a number"),
        ({"batch_size": 2.5}, "batch_size is a number"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": float("inf")}, "learning_rate must be positive"),
        ({"checkpoint_seconds": -1.0}, "checkpoint_seconds is a time"),
        ({"schedule": "linear"}, "schedule must be known.*cosine"),
        ({"monitor": "bleu"}, "monitor must be known"),
        ({"precision": "8"}, "precision must be known"),
        ({"strategy": "fsdp"}, "holds the whole model"),
    ],
)
def test_a_wrong_setting_says_what_is_wrong(setting: dict, message: str):
    with pytest.raises(FenchelError, match=message):
        TrainingConfig(**setting)
