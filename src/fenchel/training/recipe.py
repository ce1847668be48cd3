"""A task with all its settings and how its model is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from fenchel.checks import check_known
from fenchel.errors import FenchelError
from fenchel.settings import flatten, load_settings
from fenchel.training.config import TrainingConfig
from fenchel.training.task import Task

TaskT_co = TypeVar("TaskT_co", bound=Task, covariant=True)


@dataclass(frozen=True)
class Recipe(Generic[TaskT_co]):
    """A full configuration: nothing else decides what is trained on some data."""

    name: str
    """Name of the recipe."""
    summary: str
    """What the model learns, in a few words."""
    task: TaskT_co
    training: TrainingConfig

    def __post_init__(self) -> None:
        check_known("monitor", self.training.monitor, self.task.monitors)


@dataclass(frozen=True)
class StoredConfig:
    """Settings in a file: those of a recipe by name, or the `config.json` of a run.

    Attributes:
        path: The file.
        settings: Assignments `key=value`.
        recipe: The name of the recipe, if the file is of a run.
        files: The files of the run by split.
        columns: The names of their columns that differ from those of the fields.
        skip_bad: Whether bad items of them are skipped.
    """

    path: Path
    settings: tuple[str, ...] = ()
    recipe: str | None = None
    files: Mapping[str, list[str]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False

    @classmethod
    def load(cls, path: Path) -> StoredConfig:
        """Read a JSON or YAML file."""
        stored = load_settings(path)
        recipe: Any = stored.get("recipe")
        if not isinstance(recipe, dict):
            return cls(path, tuple(flatten(stored)))
        try:
            kinds = {"task": {k: v for k, v in recipe["task"].items() if k != "kind"}}
            settings = flatten({**kinds, "training": recipe["training"]})
            files, columns = (dict(stored.get(name, {})) for name in ("files", "columns"))
            skip_bad = stored.get("skip_bad") is True
            return cls(path, tuple(settings), str(recipe["name"]), files, columns, skip_bad)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FenchelError(f"{path} must be the config.json of a run or settings") from error
