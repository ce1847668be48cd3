"""How far training has come: what a checkpoint holds beside weights and optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fenchel.errors import FenchelError
from fenchel.settings import from_json
from fenchel.training.config import TrainingConfig

Record = dict[str, int | float]


@dataclass
class Progress:
    """Counts finished segments, the parts of an epoch between checkpoints, and compares validations.

    Attributes:
        segments: Number of finished segments.
        rate: Factor of the learning rate that repeated halving has left.
        history: One record per validation.
        best: Index of the best validation in the history.
        seconds: Time spent on training in all processes that resumed it, one after another.
        finished: Whether nothing is left to do.
        converged: Whether more epochs would not change the model.
    """

    segments: int = 0
    rate: float = 1.0
    history: list[Record] = field(default_factory=list)
    best: int | None = None
    seconds: float = 0.0
    finished: bool = False
    converged: bool = False

    def judge(self, record: Record, config: TrainingConfig) -> bool:
        """Add a validation, halve the rate if its loss has risen, and return whether it is the best."""
        if (
            self.history
            and record["loss"] > self.history[-1]["loss"]
            and config.schedule == "halve"
        ):
            self.rate /= 2
        self.history.append(record)
        if self.best is not None and not _better(record, self.history[self.best], config.monitor):
            return False
        self.best = len(self.history) - 1
        return True

    def out_of_patience(self, config: TrainingConfig) -> bool:
        """Whether none of the last `patience` validations was an improvement."""
        if config.patience is None or self.best is None:
            return False
        return len(self.history) - 1 - self.best >= config.patience

    def state(self) -> dict[str, Any]:
        """The progress as JSON."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Any, where: str) -> Progress:
        """The progress with this `state`; `where` names its file in errors."""
        progress = from_json(cls, state, where, "progress")
        for record in progress.history:
            for name in ("epoch", "loss"):
                if name not in record:
                    message = f"{where}: progress.history must have {name} in every record"
                    raise FenchelError(message)
        if progress.best is not None and not 0 <= progress.best < len(progress.history):
            count = len(progress.history)
            got = f"{progress.best} of {count} records"
            raise FenchelError(f"{where}: progress.best must be a place in the history, got {got}")
        return progress


def learning_rate(config: TrainingConfig, progress: Progress, step: int, epoch: float) -> float:
    """The learning rate of a step; `epoch` is the number of finished passes, with a fraction.

    >>> config = TrainingConfig(schedule="cosine", epochs=10, learning_rate=1.0)
    >>> [round(learning_rate(config, Progress(), 100, epoch), 3) for epoch in (0, 5, 9, 10)]
    [1.0, 0.5, 0.024, 0.0]

    With the schedule "inverse-sqrt", step number n after n₀ steps of warm-up has the rate √(n₀/n) of the
    highest one:

    >>> config = TrainingConfig(schedule="inverse-sqrt", warmup_steps=4, learning_rate=1.0)
    >>> [learning_rate(config, Progress(), number - 1, 0) for number in (1, 2, 4, 16, 64)]
    [0.25, 0.5, 1.0, 0.5, 0.25]
    """
    rate = config.learning_rate * progress.rate
    if config.schedule == "cosine":
        rate *= 0.5 * (1 + math.cos(math.pi * min(epoch / config.epochs, 1.0)))
    if config.schedule == "inverse-sqrt":
        rate *= math.sqrt(min(max(config.warmup_steps, 1) / (step + 1), 1.0))
    if step < config.warmup_steps:
        rate *= (step + 1) / config.warmup_steps
    return rate


def validation_line(record: Record, describe: Callable[[Mapping[str, float]], list[str]]) -> str:
    """The record of a validation on one line."""
    return "  ".join([f"epoch {record['epoch']:.0f}", *describe(record)])


def _better(record: Record, best: Record, monitor: str) -> bool:
    if monitor == "loss":
        return record["loss"] < best["loss"]
    return record[monitor] > best[monitor]
