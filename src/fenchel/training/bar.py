"""A progress bar with loss, accuracy and mean supports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fenchel.extras import require
from fenchel.training.module import TrainingModule
from fenchel.training.progress import in_words
from fenchel.training.segments import Segments, Step

lightning = require("lightning.pytorch", extra="train")
rich_progress = require("rich.progress", extra="train")
rich_console = require("rich.console", extra="train")
rich_measure = require("rich.measure", extra="train")
rich_table = require("rich.table", extra="train")
rich_text = require("rich.text", extra="train")

NARROWEST = 8


class Figures:
    """Some figures on one line: the first ones that fit on it, each as a whole."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def within(self, width: int) -> str:
        """As many as so many columns hold.

        >>> Figures("loss 1.014", "accuracy 0.092").within(24)
        'loss 1.014'
        """
        lines = ["  ".join(self.texts[:count]) for count in range(len(self.texts) + 1)]
        return max((line for line in lines if len(line) <= width), key=len)

    def __rich_measure__(self, console: Any, options: Any) -> Any:
        return rich_measure.Measurement(0, max(1, len("  ".join(self.texts))))

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield rich_text.Text(self.within(options.max_width))


class FiguresColumn(rich_progress.ProgressColumn):
    """The figures of a task."""

    def get_table_column(self) -> Any:
        return rich_table.Column()

    def render(self, task: Any) -> Figures:
        return task.fields["figures"]


def progress_bar(console: Any) -> Any:
    """A bar that takes the room which the words leave; where that is too little, the figures give way."""
    flexible = rich_table.Column(ratio=1, width=NARROWEST)
    return rich_progress.Progress(
        "[progress.description]{task.description}",
        rich_progress.BarColumn(bar_width=None, table_column=flexible),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        FiguresColumn(),
        console=console,
        transient=True,
        expand=True,
    )


class Bar(lightning.Callback):
    """Moves with every step; the figures are those of the last look, for which a device is waited.

    Every validation is a line above it, and stays.
    """

    def __init__(self, segments: Segments) -> None:
        self.segments = segments
        self._told = len(segments.progress.history)
        self._bar: Any = None

    def on_train_start(self, trainer: Any, pl_module: TrainingModule) -> None:
        if not trainer.is_global_zero:
            return
        self._bar = progress_bar(rich_console.Console(stderr=True))
        self._task = self._bar.add_task("", total=self.segments.steps_an_epoch, figures=Figures())
        self._bar.start()

    def on_train_batch_end(
        self, trainer: Any, pl_module: TrainingModule, outputs: Any, batch: Step, batch_idx: int
    ) -> None:
        if self._bar is None:
            return
        changes: dict[str, Any] = {}
        if batch.number % pl_module.config.log_every == 0 and pl_module.latest:
            means = pl_module.latest.means()
            changes["figures"] = Figures(
                f"loss {means['loss']:.3f}",
                f"accuracy {means['accuracy']:.3f}",
                f"attended {means['attention_support']:.1f}",
                f"considered {means['output_support']:.1f}",
            )
        self._bar.update(
            self._task,
            description=f"epoch {batch.epoch + 1}/{pl_module.config.epochs}",
            completed=batch.number + 1,
            total=batch.count,
            **changes,
        )

    def on_train_epoch_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        if self._bar is None:
            return
        history = self.segments.progress.history
        for record in history[self._told :]:
            self._bar.console.print(rich_text.Text(in_words(record)), soft_wrap=True)
        self._told = len(history)

    def on_train_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        self._stop()

    def on_exception(self, trainer: Any, pl_module: TrainingModule, exception: Any) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
