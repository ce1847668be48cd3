"""Training a model into a folder, from the beginning or from the last checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fenchel.data.dataset import Dataset
from fenchel.errors import FenchelError
from fenchel.extras import require
from fenchel.training.checkpoint import load_checkpoint, restore_weights
from fenchel.training.config import TrainingConfig
from fenchel.training.device import cpu_threads
from fenchel.training.direct_fit import fit_directly
from fenchel.training.lock import training_lock
from fenchel.training.progress import Progress, ValidationRecord
from fenchel.training.recipe import Recipe
from fenchel.training.run import Run, Tasks, digest_of
from fenchel.training.splits import DataSource, Splits
from fenchel.training.steps import Steps


@dataclass(frozen=True)
class RunResult:
    """The outcome of training; `finished` is false if time ran out, and the same call resumes.

    `remarks` are sentences for the user about a model that was fitted directly.
    """

    run: Run
    best: ValidationRecord
    history: tuple[ValidationRecord, ...]
    finished: bool
    remarks: tuple[str, ...] = ()


def fit(
    folder: str | Path,
    recipe: Recipe,
    splits: Splits,
    *,
    source: DataSource | None = None,
    on_start: Callable[[Progress, bool], object] | None = None,
    on_validation: Callable[[ValidationRecord], None] | None = None,
    progress_bar: bool = True,
) -> RunResult:
    """Train the model of a recipe; `folder` is a `Run` from then on.

    If the folder holds a checkpoint of the same recipe and data, training resumes from it and ends
    with the same metrics as if it had never been stopped. A folder with results but without a
    checkpoint is refused rather than overwritten. All files are written atomically: a process may be
    killed at any time, and loses at most the steps since the last checkpoint. A second process that
    trains into the same folder is refused.

    Args:
        folder: The folder, created if it does not exist.
        recipe: The configuration.
        splits: Training and development examples with targets.
        source: Where the examples come from, stored in the run.
        on_start: Called before training with the progress of the folder and whether it is finished.
        on_validation: Called with the record of every validation, in the first process only.
        progress_bar: Whether to show a progress bar if the output is a terminal.
    """
    processor = recipe.task.fit_processor(splits.train)
    recipe = replace(recipe, task=recipe.task.sized(processor))
    train = _encoded(recipe, splits.train, processor, "training")
    dev = None
    if splits.dev or recipe.task.needs_dev:
        dev = _encoded(recipe, splits.dev, processor, "development")
    run = Run(Path(folder), recipe, processor, source or DataSource(), digest_of(train))
    checkpoint = _checkpoint(run)
    progress = Progress() if checkpoint is None else checkpoint["progress"]
    finished = checkpoint is not None and _is_finished(progress, run.training)
    if on_start is not None:
        on_start(progress, finished)
    remarks: tuple[str, ...] = ()
    if finished:
        _update_free_settings(run)
    elif recipe.task.fits_directly:
        remarks = fit_directly(run, train, dev, on_validation)
    else:
        assert dev is not None
        _train(run, train, dev, checkpoint, on_validation, progress_bar)
    return replace(_result(run), remarks=remarks)


def _encoded(recipe: Recipe, examples: Sequence[Any], processor: Any, name: str) -> Dataset:
    if not examples:
        raise FenchelError(f"{recipe.name} requires at least one {name} example, got none")
    data = processor.encode(examples)
    try:
        recipe.task.check_data(data, examples)
    except FenchelError as error:
        raise FenchelError(f"{name} data: {error}") from error
    return data


def _checkpoint(run: Run) -> dict[str, Any] | None:
    """The checkpoint of the folder, if there is one; an error if it belongs to another run."""
    config = run.path / "config.json"
    if config.exists():
        run.check_continues(Run.load(run.path, _own_task(run)))
    _check_results_have(run, config, run.checkpoint_path)
    if not run.checkpoint_path.exists():
        return None
    checkpoint = load_checkpoint(run.checkpoint_path)
    if checkpoint["progress"].best is not None:
        _check_results_have(run, run.weights_path)
    return checkpoint


def _own_task(run: Run) -> Tasks:
    return {run.task.kind: lambda: type(run.task)}


def _check_results_have(run: Run, *needed: Path) -> None:
    """Raise if a folder has results but lacks files that resuming needs.

    Training from the beginning would overwrite the results. The first checkpoint is written before any
    of them, so a run that was stopped has one.
    """
    results = (run.weights_path, run.metrics_path, run.log_path, run.checkpoint_path)
    found = [path.relative_to(run.path).as_posix() for path in results if path.exists()]
    missing = [path.relative_to(run.path).as_posix() for path in needed if not path.exists()]
    if found and missing:
        got = f"{', '.join(found)} without {', '.join(missing)}"
        advice = "put the missing files back, or train into another folder"
        raise FenchelError(f"{run.path} must hold a whole run or none, got {got}: {advice}")


def _is_finished(progress: Progress, config: TrainingConfig) -> bool:
    """Whether nothing is left to do; a run whose number of epochs was raised has epochs left."""
    done = progress.history[-1]["epoch"] if progress.history else 0
    ended = progress.converged or done >= config.epochs or progress.out_of_patience(config)
    return progress.finished and ended


def _update_free_settings(run: Run) -> None:
    """Store settings of a finished run that may change, such as those of the search, and its files."""
    before = Run.load(run.path, _own_task(run))
    updated = replace(
        before, recipe=replace(run.recipe, training=before.training), source=run.source
    )
    if updated != before:
        updated.save()


def _train(
    run: Run,
    train: Dataset,
    dev: Dataset,
    checkpoint: dict[str, Any] | None,
    on_validation: Callable[[ValidationRecord], None] | None,
    progress_bar: bool,
) -> None:
    require("lightning.pytorch", extra="train")
    from fenchel.training.module import TrainingModule
    from fenchel.training.progress_bar import ProgressBar
    from fenchel.training.recorder import RunRecorder
    from fenchel.training.trainer import make_trainer, quiet

    torch.manual_seed(run.training.seed)
    model = run.task.build_model()
    progress = Progress()
    if checkpoint is None:
        run.task.initialize(model, run.processor)
    else:
        restore_weights(model, checkpoint["model"], run.checkpoint_path)
        progress = checkpoint["progress"]
    steps = Steps(train, run.training, progress)
    fields = run.task.recordable_fields
    module = TrainingModule(model, run.training, steps, fields, checkpoint)
    callbacks: list[Any] = [RunRecorder(run, dev, steps, on_validation)]
    if progress_bar and sys.stderr.isatty():
        callbacks.append(ProgressBar(steps, run.task.describe_means))
    with quiet(), cpu_threads(run.training.threads):
        trainer = make_trainer(run, callbacks)
        first = trainer.is_global_zero
        with training_lock(run.path) if first else nullcontext():
            if first:
                if checkpoint is None and run.checkpoint_path.exists():
                    rule = "the folder must not change while training starts"
                    got = f"another process has trained into {run.path}"
                    raise FenchelError(f"{rule}, but {got}; the same call resumes its run")
                run.save()
            trainer.fit(module)


def _result(run: Run) -> RunResult:
    """The result, read from the files because training may have run in other processes."""
    progress = load_checkpoint(run.checkpoint_path)["progress"]
    if progress.best is None:
        raise FenchelError(f"{run.path} has no validation after {progress.segments} segments")
    best, history = progress.history[progress.best], tuple(progress.history)
    return RunResult(run, best, history, progress.finished)
