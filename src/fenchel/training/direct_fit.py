"""Training without steps of an optimizer, such as linear models fitted by L-BFGS."""

from __future__ import annotations

import time
from collections.abc import Callable

from torch import Tensor

from fenchel.data.dataset import Dataset
from fenchel.errors import FenchelError
from fenchel.training.device import cpu_threads
from fenchel.training.files import save_tensors
from fenchel.training.lock import training_lock
from fenchel.training.progress import Progress, ValidationRecord
from fenchel.training.run import Run
from fenchel.training.validation_files import save_best, write_log


def fit_directly(
    run: Run,
    train: Dataset,
    dev: Dataset | None,
    on_validation: Callable[[ValidationRecord], None] | None = None,
) -> tuple[str, ...]:
    """Fit the model of a run with `Task.fit_model`, write its folder, and return the remarks of the task.

    Nothing is written before the model is fitted. The checkpoint marks the run as finished and has no
    state of an optimizer.
    """
    with training_lock(run.path), cpu_threads(run.training.threads):
        began = time.monotonic()
        fitted = run.task.fit_model(train, dev, run.training)
        seconds = round(time.monotonic() - began, 3)
        record: ValidationRecord = {"epoch": fitted.epochs, "seconds": seconds, **fitted.metrics}
        progress = Progress(segments=1, finished=True, converged=fitted.converged, seconds=seconds)
        progress.add_validation(record, run.training)
        weights = fitted.model.state_dict()
        if not all(value.isfinite().all() for value in weights.values()):
            raise FenchelError(
                "the weights must be finite, got NaN or infinity: scale the features"
            )
        run.save()
        _save_checkpoint(run, weights, Progress())  # first: results always have a checkpoint
        save_best(run, fitted.model, record)
        write_log(run, progress.history)
        _save_checkpoint(run, weights, progress)
        if on_validation is not None:
            on_validation(record)
    return fitted.remarks


def _save_checkpoint(run: Run, weights: dict[str, Tensor], progress: Progress) -> None:
    parts = {"model": weights, "optimizer": {}, "precision": {}, "means": {}}
    save_tensors(run.checkpoint_path, {**parts, "progress": progress.state()})
