"""Training a model into a folder, from the beginning or from where it was stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fenchel.data.codec import Codec
from fenchel.data.encoded import Encoded
from fenchel.data.example import Example
from fenchel.errors import FenchelError, rule
from fenchel.extras import require
from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig, Statistics
from fenchel.schema import from_json, shortened
from fenchel.training.config import TrainingConfig
from fenchel.training.files import load_tensors
from fenchel.training.lock import sole_trainer
from fenchel.training.progress import Progress, Record
from fenchel.training.run import Run, digest
from fenchel.training.segments import Segments
from fenchel.training.weights import restore_weights

Data = Encoded | Sequence[Example]


@dataclass(frozen=True)
class RunResult:
    """What training came to.

    `finished` is false if time ran out; the same call goes on.
    """

    path: Path
    best: Record
    history: tuple[Record, ...]
    finished: bool


def fit(
    run_dir: str | Path,
    model_config: Seq2SeqConfig,
    training_config: TrainingConfig,
    codec: Codec,
    train: Data,
    dev: Data,
    *,
    recipe: Mapping[str, Any] | None = None,
    report: Callable[[Record], None] | None = None,
    progress_bar: bool = True,
) -> RunResult:
    """Train a model; the folder `run_dir` is a `Run` from then on.

    If the folder holds a checkpoint of the same configuration and data, training goes on from it, and
    comes to the same figures as if it had never been stopped. A folder with results but without a
    checkpoint is refused rather than overwritten. All files are written as a whole: a process may be
    killed at any time, and loses at most the steps since the last checkpoint. While one process trains
    into a folder, another that would is refused.

    Args:
        run_dir: the folder, made if it is not there.
        model_config: the sizes of its vocabularies are replaced by those of `codec`.
        training_config: how to train.
        codec: text to numbers and back.
        train, dev: examples with targets, encoded or not.
        recipe: kept in the run, for the caller.
        report: called with every validation's record, in the first process only.
        progress_bar: show one, if the output is a terminal.
    """
    train, dev = _encoded(train, codec, "train"), _encoded(dev, codec, "dev")
    model_config = sized(model_config, codec)
    run = Run(Path(run_dir), model_config, training_config, codec, recipe, digest(train))
    checkpoint = _checkpoint(run)
    if checkpoint is None or not _is_finished(checkpoint, training_config):
        _train(run, train, dev, checkpoint, report, progress_bar)
    else:
        _keep_recipe(run)
    return _result(run)


def sized(config: Seq2SeqConfig, codec: Codec) -> Seq2SeqConfig:
    """The configuration with the sizes of the codec's vocabularies."""
    source, target = len(codec.source_vocabulary), len(codec.target_vocabulary)
    return replace(config, source_size=source, target_size=target)


def _checkpoint(run: Run) -> dict[str, Any] | None:
    """What the folder has to go on from; an error if that is another run's."""
    config = run.path / "config.json"
    if config.exists():
        run.check_continues(Run.load(run.path))
    _check_results_have(run, config, run.checkpoint_path)
    if not run.checkpoint_path.exists():
        return None
    checkpoint = load_checkpoint(run)
    if checkpoint["progress"].best is not None:
        _check_results_have(run, run.weights_path)
    return checkpoint


def _check_results_have(run: Run, *needed: Path) -> None:
    """Raise if a folder has results but not the files that are needed to go on with them.

    Training from the beginning would overwrite the results. The first checkpoint is written before any of
    them, so a run that was stopped has one.
    """
    results = (run.weights_path, run.metrics_path, run.log_path, run.checkpoint_path)
    found = [path.relative_to(run.path).as_posix() for path in results if path.exists()]
    missing = [path.relative_to(run.path).as_posix() for path in needed if not path.exists()]
    if found and missing:
        got = f"{', '.join(found)} without {', '.join(missing)}"
        advice = "put the missing files back, or train into another folder"
        raise FenchelError(f"{run.path} must hold a whole run or none, got {got}: {advice}")


def load_checkpoint(run: Run) -> dict[str, Any]:
    """What the run wrote last; an error if parts are missing or are not what was written.

    Under "progress" is a `Progress`; all else is as it was given to `save_tensors`.
    """
    checkpoint = load_tensors(run.checkpoint_path)
    missing = {"model", "optimizer", "precision", "totals", "progress"} - checkpoint.keys()
    if missing:
        expected, got = f"all parts in {run.checkpoint_path}", f"no {', '.join(sorted(missing))}"
        raise rule("a checkpoint is whole", expected=expected, got=got)
    where, totals = str(run.checkpoint_path), checkpoint["totals"]
    checkpoint["progress"] = Progress.from_state(checkpoint["progress"], where)
    for name in ("optimizer", "precision"):
        from_json(dict[Any, Any], checkpoint[name], where, name)
    count = len(Statistics._fields)
    is_vector = isinstance(totals, torch.Tensor) and totals.shape == (count,)
    if totals is not None and not is_vector:
        got = shortened(totals)
        raise FenchelError(f"{where}: totals must be a vector of {count} sums or None, got {got}")
    return checkpoint


def _is_finished(checkpoint: dict[str, Any], config: TrainingConfig) -> bool:
    """Whether nothing is left to do; a run whose number of epochs was raised has epochs left."""
    progress = checkpoint["progress"]
    done = progress.history[-1]["epoch"] if progress.history else 0
    return progress.finished and (done >= config.epochs or progress.out_of_patience(config))


def _keep_recipe(run: Run) -> None:
    """Training is over, but a recipe also says how answers are found and where the files are."""
    before = Run.load(run.path)
    if run.recipe is not None and run.recipe != before.recipe:
        replace(before, recipe=run.recipe).save()


def _train(
    run: Run,
    train: Encoded,
    dev: Encoded,
    checkpoint: dict[str, Any] | None,
    report: Callable[[Record], None] | None,
    progress_bar: bool,
) -> None:
    require("lightning.pytorch", extra="train")
    from fenchel.training.bar import Bar
    from fenchel.training.keeper import Keeper
    from fenchel.training.module import TrainingModule
    from fenchel.training.trainer import make_trainer, quiet

    config = run.training_config
    torch.manual_seed(config.seed)
    model = Seq2Seq(run.model_config)
    progress = Progress()
    if checkpoint is not None:
        restore_weights(model, checkpoint["model"], run.checkpoint_path)
        progress = checkpoint["progress"]
    segments = Segments(train, config, progress)
    module = TrainingModule(model, config, segments, checkpoint)
    callbacks: list[Any] = [Keeper(run, dev, segments, report)]
    if progress_bar and sys.stderr.isatty():
        callbacks.append(Bar(segments))
    with quiet():
        trainer = make_trainer(run, callbacks)
        first = trainer.is_global_zero
        with sole_trainer(run.checkpoint_path.parent) if first else nullcontext():
            if first:
                if checkpoint is None and run.checkpoint_path.exists():
                    meanwhile = f"another process has trained into {run.path} meanwhile"
                    raise FenchelError(f"{meanwhile}; the same call goes on with its run")
                run.save()
            trainer.fit(module)


def _result(run: Run) -> RunResult:
    """From the files alone: training may have happened in other processes."""
    progress = load_checkpoint(run)["progress"]
    if progress.best is None:
        got = f"none after {progress.segments} segments"
        raise rule("training ends with a validation", expected="at least one", got=got)
    best, history = progress.history[progress.best], tuple(progress.history)
    return RunResult(run.path, best, history, progress.finished)


def _encoded(data: Data, codec: Codec, name: str) -> Encoded:
    encoded = data if isinstance(data, Encoded) else Encoded.of(data, codec)
    if len(encoded) == 0:
        raise rule(f"{name} has examples", expected="at least one", got="none")
    if int(encoded.target.lengths.min()) == 0:
        raise rule(f"{name} has targets", expected="a target for every example", got="none")
    return encoded
