"""What happens at the end of a segment: validation, judgement, logs, checkpoint."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable
from typing import Any

from fenchel.data.encoded import Encoded
from fenchel.errors import rule
from fenchel.extras import require
from fenchel.models.seq2seq import Statistics
from fenchel.training.files import save_json, save_tensors, write_atomically
from fenchel.training.lock import alone_with
from fenchel.training.measure import sums
from fenchel.training.module import TrainingModule
from fenchel.training.progress import Record
from fenchel.training.run import Run
from fenchel.training.segments import Segments

lightning = require("lightning.pytorch", extra="train")

TIMES = {"seconds"}  # what differs between two runs of the same seed


class Keeper(lightning.Callback):
    """Keeps the folder of a run up to date. All is written before the segment counts as done."""

    def __init__(
        self,
        run: Run,
        dev: Encoded,
        segments: Segments,
        report: Callable[[Record], None] | None = None,
    ) -> None:
        self.run, self.dev, self.segments = run, dev, segments
        self.progress, self.report = segments.progress, report
        self._began = self._since = self._written = 0.0

    def setup(self, trainer: Any, pl_module: TrainingModule, stage: str) -> None:
        self.dev = self.dev.to(trainer.strategy.root_device)

    def on_train_start(self, trainer: Any, pl_module: TrainingModule) -> None:
        """Write the first checkpoint, so that no results are ever without one."""
        if trainer.is_global_zero and not self.run.checkpoint_path.exists():
            self._write_checkpoint(trainer, pl_module)
        self._began = self._since = self._written = time.monotonic()

    def on_train_epoch_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        """Lightning's epoch is our segment."""
        config, progress = self.run.training_config, self.progress
        epoch = self.segments.epoch + 1
        ends, last = self.segments.ends_epoch, epoch == config.epochs
        record = None
        now = time.monotonic()
        progress.seconds, self._since = progress.seconds + now - self._since, now
        late = trainer.strategy.broadcast(now - self._began) > (config.max_seconds or math.inf)
        if late or (ends and (last or epoch % config.validate_every == 0)):
            record = self._validate(trainer, pl_module, epoch)
            if not math.isfinite(record["loss"]):
                expected = "a finite validation loss (a lower learning_rate may help)"
                raise rule("training must not diverge", expected=expected, got=record["loss"])
            is_best = progress.judge(record, config)
            if trainer.is_global_zero:
                self._write_validation(trainer, pl_module, record, is_best)
        progress.segments += 1
        out_of_patience = record is not None and progress.out_of_patience(config)
        progress.finished = out_of_patience or (ends and last)
        trainer.should_stop = progress.finished or late
        due = now - self._written >= config.checkpoint_seconds
        if trainer.is_global_zero and (due or trainer.should_stop):
            self._write_checkpoint(trainer, pl_module)
            self._written = now
        trainer.strategy.barrier("segment")

    def _validate(self, trainer: Any, pl_module: TrainingModule, epoch: int) -> Record:
        """One record: the figures of the development set, and of the training since the last one."""
        total = sums(
            pl_module.model,
            self.dev,
            rank=trainer.global_rank,
            world=trainer.world_size,
            context=trainer.precision_plugin.forward_context,
        )
        seen = pl_module.totals
        if trainer.world_size > 1:
            total = trainer.strategy.reduce(total, reduce_op="sum")
            seen = None if seen is None else trainer.strategy.reduce(seen, reduce_op="sum")
        record: Record = {"epoch": epoch, "seconds": round(self.progress.seconds, 3)}
        group = trainer.optimizers[0].param_groups[0]
        record["learning_rate"] = float(group["lr"])
        if seen is not None:
            trained = Statistics.of(seen).means()
            record |= {f"train_{name}": trained[name] for name in ("loss", "accuracy")}
        pl_module.totals = None
        return record | Statistics.of(total).means()

    def _write_validation(
        self, trainer: Any, pl_module: TrainingModule, record: Record, is_best: bool
    ) -> None:
        if is_best:
            save_tensors(self.run.weights_path, pl_module.model.state_dict())
            best = {name: value for name, value in record.items() if name not in TIMES}
            with alone_with(self.run.metrics_path):
                save_json(self.run.metrics_path, {"dev": best})
        write_log(self.run, self.progress.history)
        for logger in trainer.loggers:
            logger.log_metrics(record, step=int(record["epoch"]))
        if self.report is not None:
            self.report(record)

    def _write_checkpoint(self, trainer: Any, pl_module: TrainingModule) -> None:
        checkpoint = {
            "model": pl_module.model.state_dict(),
            "optimizer": trainer.optimizers[0].state_dict(),
            "precision": trainer.precision_plugin.state_dict(),
            "totals": pl_module.totals,
            "progress": self.progress.state(),
        }
        save_tensors(self.run.checkpoint_path, checkpoint)


def write_log(run: Run, history: list[Record]) -> None:
    """`log.csv`, one row a validation."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for record in history for name in record))
    rows = csv.DictWriter(text, names, lineterminator="\n")
    rows.writeheader()
    rows.writerows(history)
    write_atomically(run.log_path, lambda file: file.write(text.getvalue().encode()))
