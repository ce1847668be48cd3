"""Runs: folders with everything needed to resume training or to use the model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

import fenchel
from fenchel.data.bad_items import BadItems
from fenchel.data.dataset import Dataset
from fenchel.errors import FenchelError
from fenchel.settings import from_json, to_json
from fenchel.stored_json import shortened
from fenchel.training.checkpoint import load_weights
from fenchel.training.config import TrainingConfig
from fenchel.training.files import load_json, save_json
from fenchel.training.lock import exclusive_access
from fenchel.training.recipe import Recipe
from fenchel.training.splits import DataSource
from fenchel.training.task import Columns, Metrics, Paths, Processor, PublicSet, Task

FORMAT = 2
# Settings that do not influence a training step.
FREE_SETTINGS = {"patience", "max_seconds", "checkpoint_seconds", "accelerator", "threads"}

Tasks = Mapping[str, Callable[[], type[Task]]]


@dataclass(frozen=True)
class Run:
    """A model that was trained or is in training.

    The folder holds `config.json` (recipe, data, version), `processor.json`, `best.pt` (weights of the
    best validation), `checkpoints/last.ckpt` (where training resumes), weights of the last validations
    in the same folder if weights are averaged, `log.csv` (one row per validation), `metrics.json` and,
    where TensorBoard is installed, its `logs`.

    Args:
        path: The folder.
        recipe: The configuration.
        processor: What the task fitted to the training examples.
        source: Where the examples come from.
        digest: A digest of the training examples.
    """

    path: Path
    recipe: Recipe
    processor: Processor
    source: DataSource = field(default_factory=DataSource)
    digest: str = ""

    @property
    def task(self) -> Any:
        """The task of the recipe."""
        return self.recipe.task

    @property
    def training(self) -> TrainingConfig:
        """The training configuration of the recipe."""
        return self.recipe.training

    @property
    def checkpoint_path(self) -> Path:
        return self.path / "checkpoints" / "last.ckpt"

    def validation_path(self, number: int) -> Path:
        """The weights at validation `number`, kept as long as averages need them."""
        return self.checkpoint_path.with_name(f"validation-{number}.pt")

    @property
    def weights_path(self) -> Path:
        return self.path / "best.pt"

    @property
    def log_path(self) -> Path:
        return self.path / "log.csv"

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.json"

    @cached_property
    def model(self) -> nn.Module:
        """The model of the best validation so far, in evaluation mode, on the CPU."""
        if not self.weights_path.exists():
            name = self.weights_path.name
            raise FenchelError(f"{self.path} has no model yet: {name} is written by a validation")
        return load_weights(self.task, self.weights_path).eval()

    @property
    def metrics(self) -> dict[str, Metrics]:
        """The metrics of the best validation under "dev", and those of evaluations by split."""
        if not self.metrics_path.exists():
            return {}
        stored = load_json(self.metrics_path)
        return from_json(dict[str, dict[str, Any]], stored, str(self.metrics_path))

    def save_metrics(self, name: str, metrics: Metrics) -> None:
        """Add metrics to the folder under a name; concurrent calls do not lose any."""
        with exclusive_access(self.metrics_path):
            save_json(self.metrics_path, {**self.metrics, name: metrics})

    @classmethod
    def load(cls, path: str | Path, tasks: Tasks) -> Run:
        """The run in a folder; its weights are read when its model is first used."""
        path = Path(path)
        file = path / "config.json"
        if not file.is_file():
            raise FenchelError(f"no run found in {path}: config.json is missing")
        where = str(file)
        stored = _stored_run(load_json(file), where)
        task = _load_task(stored.recipe.task, tasks, where)
        processor_file = path / "processor.json"
        processor = task.load_processor(load_json(processor_file), str(processor_file))
        task = task.sized(processor)
        try:
            recipe = Recipe(stored.recipe.name, stored.recipe.summary, task, stored.recipe.training)
        except FenchelError as error:
            raise FenchelError(f"{where}: recipe.training: {error}") from error
        source = DataSource(stored.files, stored.columns, stored.public, stored.skip_bad)
        return cls(path, recipe, processor, source, stored.digest)

    def save(self) -> None:
        """Write the configuration and the processor."""
        save_json(self.path / "processor.json", self.processor.state())
        save_json(self.path / "config.json", self._state())

    def with_training(self, training: TrainingConfig) -> Run:
        """The run with another training configuration."""
        return replace(self, recipe=replace(self.recipe, training=training))

    def check_continues(self, before: Run) -> None:
        """Raise unless training may resume where `before`, found in the same folder, stopped."""
        ours, theirs = self._state()["recipe"], before._state()["recipe"]
        for name, value, old in _differences(ours, theirs):
            if not any(name == free or name.startswith(f"{free}.") for free in self._free_settings):
                raise FenchelError(
                    f"{self.path} holds a run with {name}={old!r}, got {name}={value!r}: "
                    "use the stored value or another folder"
                )
        if self.digest != before.digest or self.processor.state() != before.processor.state():
            raise FenchelError(
                f"{self.path} holds a run with other training data: use the same examples, "
                "read in the same way, or another folder"
            )

    @property
    def _free_settings(self) -> set[str]:
        """Settings that may change; the number of epochs shapes a cosine schedule."""
        epochs = {"epochs"} if self.training.schedule != "cosine" else set()
        task = {f"task.{name}" for name in self.task.free_settings}
        return task | {f"training.{name}" for name in FREE_SETTINGS | epochs} | {"name", "summary"}

    def _state(self) -> dict[str, Any]:
        task = {"kind": self.task.kind, **to_json(self.task)}
        recipe = {**to_json(self.recipe), "task": task}
        return {
            "format": FORMAT,
            "version": fenchel.__version__,
            "recipe": recipe,
            **asdict(self.source),
            "digest": self.digest,
        }

    def evaluation_examples(
        self, paths: Paths = (), columns: Columns | None = None, bad: BadItems | None = None
    ) -> tuple[str, Sequence[Any]]:
        """Examples to evaluate with, and their name.

        They come from `paths` if given, else from the test set of the run, else from its development
        set. Development examples that were held out of the training files are held out again.

        Args:
            paths: Files with targets.
            columns: The names of their columns that differ from those of the fields.
            bad: Whether bad items are skipped; by default, as when the run was trained.
        """
        bad = bad or BadItems(self.source.skip_bad)
        if paths:
            examples = self.task.read(paths, columns=columns, bad=bad)
            examples = self.task.usable(examples, self.processor, bad)
            if not examples:
                got = f"; {bad.summary}" if bad.count else ", got none"
                raise FenchelError(f"{', '.join(paths)} must have at least one example{got}")
            return "data", examples
        files = self.source.files
        for split in ("test", "dev"):
            if files.get(split):
                examples = self.source.read(self.task, split, bad)
                return split, self.task.usable(examples, self.processor, bad)
        if files.get("train") and not self.task.needs_dev:
            rule = f"{self.path} has neither test nor development examples"
            raise FenchelError(f"{rule}: pass --data FILE")
        splits = self.source.splits(self.recipe, bad)
        if files.get("train"):
            if digest_of(self.processor.encode(splits.train)) != self.digest:
                raise FenchelError(
                    "the training files of the run have changed, so its development examples cannot "
                    "be found again: pass --data FILE"
                )
            return "dev", splits.dev
        return "test", splits.test


@dataclass(frozen=True)
class _StoredRecipe:
    name: str
    summary: str
    task: dict[str, Any]
    training: TrainingConfig


@dataclass(frozen=True)
class _StoredRun:
    """The contents of `config.json`."""

    format: int
    version: str
    recipe: _StoredRecipe
    digest: str
    files: dict[str, list[str]] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    public: PublicSet | None = None
    skip_bad: bool = False


def _stored_run(state: Any, where: str) -> _StoredRun:
    found = state.get("format") if isinstance(state, dict) else state
    made = state.get("version", "unknown") if isinstance(state, dict) else "unknown"
    if made != fenchel.__version__:
        where = f"{where} (written by fenchel {shortened(made)}, read by {fenchel.__version__})"
    if found != FORMAT:
        raise FenchelError(f"{where} must have format {FORMAT}, got {shortened(found)}")
    return from_json(_StoredRun, state, where)


def _load_task(stored: Mapping[str, Any], tasks: Tasks, where: str) -> Task:
    kind = stored.get("kind")
    if not isinstance(kind, str) or kind not in tasks:
        known = " or ".join(tasks)
        raise FenchelError(f"{where}: recipe.task.kind must be {known}, got {shortened(kind)}")
    settings = {name: value for name, value in stored.items() if name != "kind"}
    return from_json(tasks[kind](), settings, where, "recipe.task")


def _differences(ours: Any, theirs: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Path, our value and their value wherever two nested dictionaries differ."""
    if not (isinstance(ours, Mapping) and isinstance(theirs, Mapping)):
        return [] if ours == theirs else [(path, ours, theirs)]
    return [
        found
        for name, value in ours.items()
        for found in _differences(value, theirs.get(name), f"{path}.{name}".removeprefix("."))
    ]


def digest_of(data: Dataset) -> str:
    """A digest that is equal for the same examples in the same order."""
    found = hashlib.blake2b(digest_size=16)
    for tensor in data.tensors():
        found.update(tensor.cpu().numpy().tobytes())
    return found.hexdigest()
