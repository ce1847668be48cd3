"""Where training stands: what a checkpoint remembers beside weights and optimizer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from fenchel.errors import FenchelError
from fenchel.schema import from_json
from fenchel.training.config import MONITORS, TrainingConfig

Record = dict[str, float]


@dataclass
class Progress:
    """Counts segments, the pieces of an epoch between checkpoints, and judges validations.

    Attributes:
        segments: that are done.
        rate: the factor that halving has left of the learning rate.
        history: one record a validation.
        best: the place in the history of the best one so far.
        seconds: spent on training, over all sittings.
        finished: nothing is left to do.
    """

    segments: int = 0
    rate: float = 1.0
    history: list[Record] = field(default_factory=list)
    best: int | None = None
    seconds: float = 0.0
    finished: bool = False

    def judge(self, record: Record, config: TrainingConfig) -> bool:
        """Add a validation; the rate is halved if its loss has risen. Whether it is the best."""
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
        """Whether the last `patience` validations have brought nothing better."""
        if config.patience is None or self.best is None:
            return False
        return len(self.history) - 1 - self.best >= config.patience

    def state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Any, where: str) -> Progress:
        """The progress that had this `state`; `where` is named in errors."""
        progress = from_json(cls, state, where, "progress")
        for record in progress.history:
            for name in ("epoch", *MONITORS):
                if name not in record:
                    raise FenchelError(
                        f"{where}: progress.history must have {name} in every record"
                    )
        if progress.best is not None and not 0 <= progress.best < len(progress.history):
            count = len(progress.history)
            got = f"{progress.best} of {count} records"
            raise FenchelError(f"{where}: progress.best must be a place in the history, got {got}")
        return progress


def learning_rate(config: TrainingConfig, progress: Progress, step: int, epoch: float) -> float:
    """The rate of a step; `epoch` counts the passes done, with a fraction.

    >>> config = TrainingConfig(schedule="cosine", epochs=10, learning_rate=1.0)
    >>> [round(learning_rate(config, Progress(), 100, epoch), 3) for epoch in (0, 5, 9, 10)]
    [1.0, 0.5, 0.024, 0.0]
    """
    rate = config.learning_rate * progress.rate
    if config.schedule == "cosine":
        rate *= 0.5 * (1 + math.cos(math.pi * min(epoch / config.epochs, 1.0)))
    if step < config.warmup_steps:
        rate *= (step + 1) / config.warmup_steps
    return rate


def in_words(record: Record) -> str:
    """What a validation came to, on one line."""
    return (
        f"epoch {record['epoch']:.0f}  loss {record['loss']:.4f}  "
        f"symbols {100 * record['accuracy']:.1f} %  sequences {100 * record['exact']:.1f} %  "
        f"attended {record['attention_support']:.1f}  considered {record['output_support']:.1f}"
    )


def _better(record: Record, best: Record, monitor: str) -> bool:
    if monitor == "loss":
        return record["loss"] < best["loss"]
    return record[monitor] > best[monitor]
