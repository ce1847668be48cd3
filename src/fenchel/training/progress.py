"""The progress of a training run, which checkpoints store: finished segments and validation records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fenchel.errors import FenchelError
from fenchel.settings import from_json
from fenchel.training.config import TrainingConfig

ValidationRecord = dict[str, int | float]  # one row of `log.csv`


@dataclass
class Progress:
    """Finished segments (the parts of an epoch between checkpoints), and the validations so far.

    Attributes:
        segments: Number of finished segments.
        rate: Factor of the learning rate, halved by the schedule "halve".
        history: One record per validation.
        best: Index of the best validation in the history.
        seconds: Training time, summed over all processes that resumed the run.
        finished: Whether nothing is left to do.
        converged: Whether more epochs would not change the model.
    """

    segments: int = 0
    rate: float = 1.0
    history: list[ValidationRecord] = field(default_factory=list)
    best: int | None = None
    seconds: float = 0.0
    finished: bool = False
    converged: bool = False

    def add_validation(self, record: ValidationRecord, config: TrainingConfig) -> bool:
        """Add the record of a validation, and return whether it is the best so far.

        With the schedule "halve", the learning rate is halved if the loss has risen.
        """
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


def validation_line(
    record: ValidationRecord, describe: Callable[[Mapping[str, float]], list[str]]
) -> str:
    """The record of a validation on one line."""
    return "  ".join([f"epoch {record['epoch']:.0f}", *describe(record)])


def _better(record: ValidationRecord, best: ValidationRecord, monitor: str) -> bool:
    if monitor == "loss":
        return record["loss"] < best["loss"]
    return record[monitor] > best[monitor]
