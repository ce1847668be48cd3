"""Training of models that are fitted in one go, such as linear models by L-BFGS."""

from __future__ import annotations

import time
from collections.abc import Callable

from torch import Tensor

from fenchel.data.dataset import Dataset
from fenchel.errors import FenchelError
from fenchel.training.device import cpu_threads
from fenchel.training.files import save_tensors
from fenchel.training.lock import training_lock
from fenchel.training.progress import Progress, Record
from fenchel.training.records import save_best, write_log
from fenchel.training.run import Run


def fit_at_once(
    run: Run,
    train: Dataset,
    dev: Dataset | None,
    on_validation: Callable[[Record], None] | None = None,
) -> tuple[str, ...]:
    """Fit the model of a run and write its folder; the remarks of the task are returned.

    Nothing is written before the model is fitted. The checkpoint only says that the run is finished:
    there is nothing to resume from.
    """
    with training_lock(run.path), cpu_threads(run.training.threads):
        began = time.monotonic()
        fitted = run.task.fit_model(train, dev, run.training)
        seconds = round(time.monotonic() - began, 3)
        record: Record = {"epoch": fitted.epochs, "seconds": seconds, **fitted.metrics}
        progress = Progress(segments=1, finished=True, converged=fitted.converged, seconds=seconds)
        progress.judge(record, run.training)
        weights = fitted.model.state_dict()
        if not all(value.isfinite().all() for value in weights.values()):
            raise FenchelError(
                "the weights must be finite, got NaN or infinity: scale the features"
            )
        run.save()
        _save_checkpoint(run, weights, Progress())  # first, so that there are never results without
        save_best(run, fitted.model, record)
        write_log(run, progress.history)
        _save_checkpoint(run, weights, progress)
        if on_validation is not None:
            on_validation(record)
    return fitted.remarks


def _save_checkpoint(run: Run, weights: dict[str, Tensor], progress: Progress) -> None:
    parts = {"model": weights, "optimizer": {}, "precision": {}, "means": {}}
    save_tensors(run.checkpoint_path, {**parts, "progress": progress.state()})
