"""The configuration of training, and the recipe that it is part of."""

from __future__ import annotations

import pytest

from fenchel import FenchelError
from fenchel.training import TrainingConfig
from tests.training.small import small_recipe


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number of at least 1, got 2.5"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0 and finite"),
        ({"learning_rate": float("inf")}, "learning_rate must be above 0 and finite"),
        ({"checkpoint_seconds": -1.0}, "checkpoint_seconds must be at least 0"),
        ({"schedule": "linear"}, "schedule must be .*cosine"),
        ({"precision": "8"}, "precision must be .*bf16-mixed"),
        ({"strategy": "fsdp"}, "strategy must be 'auto' or start with 'ddp', got 'fsdp'"),
        ({"held_out": 1.0}, "held_out must be at least 0 and below 1, got 1.0"),
        ({"held_out": -0.1}, "held_out must be at least 0 and below 1, got -0.1"),
        ({"accumulate": 0}, "accumulate must be a whole number of at least 1, got 0"),
        ({"average": 0}, "average must be a whole number of at least 1, got 0"),
        ({"beta2": 1.0}, "beta2 must be at least 0 and below 1, got 1.0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seed": 2**63}, "seed must be at most 9223372036854775807"),
    ],
)
def test_wrong_settings_are_refused(setting: dict, message: str):
    with pytest.raises(FenchelError, match=message):
        TrainingConfig(**setting)


def test_the_monitor_must_be_a_metric_of_the_task():
    assert small_recipe(monitor="exact").training.monitor == "exact"
    with pytest.raises(FenchelError, match=r"monitor must be one of accuracy, .*got 'bleu'"):
        small_recipe(monitor="bleu")
