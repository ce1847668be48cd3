"""A progress bar with loss, accuracy and mean supports."""

from __future__ import annotations

from typing import Any

from fenchel.extras import require
from fenchel.training.module import TrainingModule
from fenchel.training.segments import Segments, Step

lightning = require("lightning.pytorch", extra="train")
rich_progress = require("rich.progress", extra="train")


class Bar(lightning.Callback):
    """Moves with every look at the training loss, and so costs the steps between nothing."""

    def __init__(self, segments: Segments) -> None:
        self.segments = segments
        self._bar: Any = None

    def on_train_start(self, trainer: Any, pl_module: TrainingModule) -> None:
        if not trainer.is_global_zero:
            return
        self._bar = rich_progress.Progress(
            "[progress.description]{task.description}",
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(),
            "{task.fields[figures]}",
            console=require("rich.console", extra="train").Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=self.segments.steps_an_epoch, figures="")
        self._bar.start()

    def on_train_batch_end(
        self, trainer: Any, pl_module: TrainingModule, outputs: Any, batch: Step, batch_idx: int
    ) -> None:
        if self._bar is None or batch.number % pl_module.config.log_every or not pl_module.latest:
            return
        means = pl_module.latest.means()
        figures = (
            f"loss {means['loss']:.3f}  accuracy {means['accuracy']:.3f}  "
            f"attended {means['attention_support']:.1f}  considered {means['output_support']:.1f}"
        )
        self._bar.update(
            self._task,
            description=f"epoch {batch.epoch + 1}/{pl_module.config.epochs}",
            completed=batch.number + 1,
            total=batch.count,
            figures=figures,
        )

    def on_train_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        self._stop()

    def on_exception(self, trainer: Any, pl_module: TrainingModule, exception: Any) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
