"""Schedules, the choice of the best validation, and patience."""

from __future__ import annotations

import pytest

from fenchel.training import TrainingConfig
from fenchel.training.progress import Progress
from fenchel.training.schedule import learning_rate


def _record(loss: float, accuracy: float = 0.5) -> dict[str, float]:
    return {"epoch": 1, "loss": loss, "accuracy": accuracy, "exact": accuracy}


def test_the_rate_is_halved_whenever_the_loss_has_risen():
    config, progress, rates = TrainingConfig(learning_rate=1.0), Progress(), []
    for loss in (3.0, 2.0, 2.5, 2.6, 1.0):
        progress.add_validation(_record(loss), config)
        rates.append(learning_rate(config, progress, 0, 0))
    assert rates == [1, 1, 0.5, 0.25, 0.25]


def test_the_cosine_does_not_halve_and_warmup_rises():
    config = TrainingConfig(learning_rate=1.0, schedule="cosine", epochs=4, warmup_steps=10)
    progress = Progress()
    for loss in (1.0, 2.0):
        progress.add_validation(_record(loss), config)
    assert [learning_rate(config, progress, step, 0) for step in (0, 4, 9, 10)] == [0.1, 0.5, 1, 1]
    assert learning_rate(config, progress, 20, 2) == pytest.approx(0.5)


def test_the_inverse_square_root_rises_linearly_and_falls_with_the_root():
    config = TrainingConfig(learning_rate=2.0, schedule="inverse-sqrt", warmup_steps=100)
    progress = Progress()
    for loss in (1.0, 2.0):  # does not halve
        progress.add_validation(_record(loss), config)
    rates = [learning_rate(config, progress, number - 1, 0) for number in range(1, 1001)]
    assert rates[:100] == pytest.approx([2 * number / 100 for number in range(1, 101)])
    assert rates[99:] == pytest.approx([20 / number**0.5 for number in range(100, 1001)])
    without = TrainingConfig(learning_rate=2.0, schedule="inverse-sqrt")
    assert [learning_rate(without, progress, step, 0) for step in (0, 3)] == [2.0, 1.0]


@pytest.mark.parametrize(("monitor", "best"), [("accuracy", 1), ("loss", 2)])
def test_the_monitor_chooses_the_best(monitor: str, best: int):
    config, progress = TrainingConfig(monitor=monitor, patience=2), Progress()
    records = [_record(3, 0.1), _record(2, 0.9), _record(1, 0.3)]
    improved = [progress.add_validation(record, config) for record in records]
    assert progress.best == best
    assert improved == [True, True, best == 2]
    assert not progress.out_of_patience(config)
    progress.add_validation(_record(9, 0.0), config)
    assert progress.out_of_patience(config) == (best == 1)
