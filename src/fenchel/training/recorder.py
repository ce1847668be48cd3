"""The callback that validates, and writes checkpoints, logs and the best model of a run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fenchel.data.dataset import Dataset
from fenchel.errors import FenchelError
from fenchel.extras import require
from fenchel.models.means import read_means
from fenchel.training.averaging import averaged_weights
from fenchel.training.files import save_tensors
from fenchel.training.module import TrainingModule
from fenchel.training.progress import ValidationRecord
from fenchel.training.run import Run
from fenchel.training.steps import Steps
from fenchel.training.validation import validation_sums
from fenchel.training.validation_files import save_best, write_log

lightning = require("lightning.pytorch", extra="train")


class RunRecorder(lightning.Callback):
    """Validates, logs and writes checkpoints at the end of a segment, before it counts as done.

    Lightning's own checkpoints are not used because they cannot resume in the middle of an epoch with
    the same batches, and are not written atomically.

    A validation measures the mean of the weights of the last `average` validations, and keeps it if it
    is the best.
    """

    def __init__(
        self,
        run: Run,
        dev: Dataset,
        steps: Steps,
        on_validation: Callable[[ValidationRecord], None] | None = None,
    ) -> None:
        self.run, self.dev, self.steps = run, dev, steps
        self.progress, self.on_validation = steps.progress, on_validation
        self._began = self._since = self._written = 0.0

    def setup(self, trainer: Any, pl_module: TrainingModule, stage: str) -> None:
        self.dev = self.dev.to(trainer.strategy.root_device)

    def on_train_start(self, trainer: Any, pl_module: TrainingModule) -> None:
        """Write the first checkpoint before any results: a run with results can always be resumed."""
        if trainer.is_global_zero and not self.run.checkpoint_path.exists():
            self._write_checkpoint(trainer, pl_module, {})
        self._began = self._since = self._written = time.monotonic()

    def on_train_epoch_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        """An epoch of Lightning is a segment of ours."""
        config, progress = self.run.training, self.progress
        epoch = self.steps.epoch + 1
        ends, last = self.steps.ends_epoch, epoch >= config.epochs
        record = None
        now = time.monotonic()
        progress.seconds, self._since = progress.seconds + now - self._since, now
        late = trainer.strategy.broadcast(now - self._began) > (config.max_seconds or math.inf)
        if late or (ends and (last or epoch % config.validate_every == 0)):
            earlier = [self.run.validation_path(number) for number in self._averaged()]
            if trainer.is_global_zero and config.average > 1:
                path = self.run.validation_path(len(progress.history))
                save_tensors(path, pl_module.model.state_dict())
            with averaged_weights(pl_module.model, earlier):
                record = self._validate(trainer, pl_module, epoch)
                is_best = progress.add_validation(record, config)
                if trainer.is_global_zero:
                    self._write_validation(trainer, pl_module, record, is_best)
        progress.segments += 1
        out_of_patience = record is not None and progress.out_of_patience(config)
        progress.finished = out_of_patience or (ends and last)
        trainer.should_stop = progress.finished or late
        due = now - self._written >= config.checkpoint_seconds
        sums = pl_module.total_sums()
        if trainer.is_global_zero and (due or trainer.should_stop):
            self._write_checkpoint(trainer, pl_module, sums)
            self._written = now
        trainer.strategy.barrier("segment")

    def _averaged(self) -> range:
        """The earlier validations whose weights the next one averages."""
        done = len(self.progress.history)
        return range(max(0, done - self.run.training.average + 1), done)

    def _validate(self, trainer: Any, pl_module: TrainingModule, epoch: int) -> ValidationRecord:
        """The metrics of the development set, and of training since the last validation."""
        names, sums = validation_sums(
            self.run.task,
            pl_module.model,
            self.dev,
            rank=trainer.global_rank,
            world=trainer.world_size,
            context=trainer.precision_plugin.forward_context,
        )
        if trainer.world_size > 1:
            sums = trainer.strategy.reduce(sums, reduce_op="sum")
        record: ValidationRecord = {"epoch": epoch, "seconds": round(self.progress.seconds, 3)}
        group = trainer.optimizers[0].param_groups[0]
        record["learning_rate"] = float(group["lr"])
        totals = pl_module.total_sums()
        training = read_means(list(totals), torch.stack(list(totals.values()))) if totals else {}
        pl_module.sums = {}
        record |= {f"train_{k}": v for k, v in training.items()} | read_means(names, sums)
        if not math.isfinite(record["loss"]):
            raise FenchelError(
                f"the validation loss must be finite, got {record['loss']}: training has "
                "diverged, and a lower learning_rate may help"
            )
        return record | self.run.task.model_values(pl_module.model)

    def _write_validation(
        self, trainer: Any, pl_module: TrainingModule, record: ValidationRecord, is_best: bool
    ) -> None:
        if is_best:
            save_best(self.run, pl_module.model, record)
        write_log(self.run, self.progress.history)
        for logger in trainer.loggers:
            logger.log_metrics(record, step=int(record["epoch"]))
        if self.on_validation is not None:
            self.on_validation(record)

    def _write_checkpoint(
        self, trainer: Any, pl_module: TrainingModule, sums: dict[str, Tensor]
    ) -> None:
        checkpoint = {
            "model": pl_module.model.state_dict(),
            "optimizer": trainer.optimizers[0].state_dict(),
            "precision": trainer.precision_plugin.state_dict(),
            "means": sums,
            "progress": self.progress.state(),
        }
        save_tensors(self.run.checkpoint_path, checkpoint)
        needed = {self.run.validation_path(number) for number in self._averaged()}
        for path in self.run.checkpoint_path.parent.glob("validation-*.pt"):
            if path not in needed:
                path.unlink()
