"""A progress bar for the whole training, with the time that remains and the latest metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from fenchel.extras import require
from fenchel.models.means import read_means
from fenchel.training.module import TrainingModule
from fenchel.training.progress import validation_line
from fenchel.training.steps import Step, Steps

lightning = require("lightning.pytorch", extra="train")
rich_progress = require("rich.progress", extra="train")
rich_columns = require("rich.columns", extra="train")
rich_console = require("rich.console", extra="train")
rich_table = require("rich.table", extra="train")
rich_text = require("rich.text", extra="train")

ESTIMATE_FROM = 600.0  # seconds of training whose speed the estimate is based on


class MetricsProgress(rich_progress.Progress):
    """A bar with the time that remains, and a line of metrics under it."""

    def __init__(self, console: Any) -> None:
        super().__init__(
            "{task.description}",
            rich_progress.BarColumn(None, table_column=rich_table.Column(ratio=1, width=8)),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(),
            "•",
            rich_progress.TimeRemainingColumn(compact=True),
            "left",
            console=console,
            speed_estimate_period=ESTIMATE_FROM,
            transient=True,
            expand=True,
        )

    def get_renderables(self) -> Iterator[Any]:
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            yield rich_columns.Columns(task.fields["metrics"], padding=(0, 2))


class ProgressBar(lightning.Callback):
    """Shows the progress of training, and prints a line for every validation.

    The bar counts the steps of all epochs, so the time that remains is that of the whole training.
    Metrics are updated every `log_every` steps, as reading them waits for the device.
    """

    def __init__(self, steps: Steps, describe: Callable[[Mapping[str, float]], list[str]]) -> None:
        self.steps, self.describe = steps, describe
        self._printed = len(steps.progress.history)
        self._bar: Any = None

    def on_train_start(self, trainer: Any, pl_module: TrainingModule) -> None:
        if not trainer.is_global_zero:
            return
        done = self.steps.progress.segments / self.steps.segments_per_epoch
        total = self._steps(pl_module.config.epochs)
        self._bar = MetricsProgress(rich_console.Console(stderr=True))
        self._task = self._bar.add_task("", completed=self._steps(done), total=total, metrics=[])
        self._bar.start()

    def on_train_batch_end(
        self, trainer: Any, pl_module: TrainingModule, outputs: Any, batch: Step, batch_idx: int
    ) -> None:
        if self._bar is None:
            return
        changes: dict[str, Any] = {}
        if batch.number % pl_module.config.log_every == 0 and pl_module.latest:
            sums = torch.stack(list(pl_module.latest.values()))
            changes["metrics"] = self.describe(read_means(list(pl_module.latest), sums))
        self._bar.update(
            self._task,
            description=f"epoch {batch.epoch + 1}/{pl_module.config.epochs}",
            completed=self._steps(batch.epoch + (batch.number + 1) / batch.count),
            **changes,
        )

    def on_train_epoch_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        if self._bar is None:
            return
        history = self.steps.progress.history
        for record in history[self._printed :]:
            line = validation_line(record, self.describe)
            self._bar.console.print(rich_text.Text(line), soft_wrap=True)
        self._printed = len(history)

    def on_train_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        self._stop()

    def on_exception(self, trainer: Any, pl_module: TrainingModule, exception: Any) -> None:
        self._stop()

    def _steps(self, epochs: float) -> int:
        """The steps of some epochs, all as long as the first; a new total would reset rich's estimate."""
        return round(epochs * self.steps.per_epoch)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
