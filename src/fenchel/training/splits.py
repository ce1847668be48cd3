"""The training, development and test examples of a run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from fenchel.data.bad_items import BadItems
from fenchel.errors import FenchelError
from fenchel.training.recipe import Recipe
from fenchel.training.task import Paths, PublicSet, Task

SPLITS = ("train", "dev", "test")
LARGEST_HELD_OUT = 2000


@dataclass(frozen=True)
class Splits:
    """Examples to train on, to select the best epoch with, and to test on; `notes` describe them.

    `others` are further test sets by name.
    """

    train: Sequence[Any]
    dev: Sequence[Any]
    test: Sequence[Any] = ()
    notes: tuple[str, ...] = ()
    others: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def part(self, name: str) -> Sequence[Any]:
        """The examples with this name: "train", "dev", "test", or one of the others."""
        return getattr(self, name) if name in SPLITS else self.others[name]


@dataclass(frozen=True)
class DataSource:
    """Where the examples of a run come from; without files or a public set, from the package.

    `columns` maps fields to the columns of the files where their names differ. With `skip_bad`, bad
    items of the files are skipped and counted instead of an error.
    """

    files: dict[str, list[str]] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    public: PublicSet | None = None
    skip_bad: bool = False

    @classmethod
    def of_files(
        cls,
        files: Mapping[str, Paths],
        columns: Mapping[str, str] | None = None,
        *,
        skip_bad: bool = False,
    ) -> DataSource:
        """Files by split, with paths that can be found from any folder."""
        absolute = {
            split: [str(Path(path).resolve()) for path in paths]
            for split, paths in files.items()
            if paths
        }
        return cls(absolute, dict(columns or {}), skip_bad=skip_bad)

    def read(self, task: Task, split: str, bad: BadItems | None = None) -> list[Any]:
        """The examples of the files of a split."""
        paths = self.files.get(split)
        bad = bad or BadItems(self.skip_bad)
        return task.read(paths, columns=self.columns, bad=bad) if paths else []

    def splits(self, recipe: Recipe, bad: BadItems | None = None) -> Splits:
        """The examples; without development files, some of the training examples are held out.

        Args:
            recipe: The recipe, whose task reads the files.
            bad: Counts bad items; by default, they are skipped if `skip_bad` says so.
        """
        if self.public is not None:
            return Splits(**recipe.task.read_public(self.public))
        if not self.files.get("train"):
            return _bundled(recipe, self.files)
        return _read(recipe, self, bad or BadItems(self.skip_bad))


def _read(recipe: Recipe, source: DataSource, bad: BadItems) -> Splits:
    task = recipe.task
    train, dev, test = (source.read(task, split, bad) for split in SPLITS)
    task.check_training_examples(train, bad)
    if task.selects_examples and train:
        processor = task.fit_processor(train)
        dev, test = (task.usable(part, processor, bad) for part in (dev, test))
    notes = [f"training on {len(train)} examples", *([bad.summary] if bad.count else [])]
    if not dev and task.needs_dev:
        train, dev = _hold_out(recipe, train)
        notes.append(f"no --dev: {len(dev)} of them are held out to select the best epoch")
    notes += _overlaps(task, train, {"dev": dev, "test": test})
    return Splits(train, dev, test, tuple(notes))


def _bundled(recipe: Recipe, files: Mapping[str, Paths]) -> Splits:
    bundled = recipe.task.bundled()
    if bundled is None:
        columns = recipe.task.columns
        raise FenchelError(f"{recipe.name} requires --train FILE with the columns {columns}")
    for split in files:
        raise FenchelError(
            f"--{split} requires --train: the examples of the package have their own"
        )
    note = f"no --train: training on the {len(bundled['train'])} examples that come with fenchel"
    return Splits(**bundled, notes=(note,))


def _overlaps(task: Task, train: Sequence[Any], others: Mapping[str, Sequence[Any]]) -> list[str]:
    """Notes on splits that share inputs with the training examples: their metrics are too high."""
    input_key = task.input_key(train)
    known = {input_key(example) for example in train}
    shared = {name: sum(input_key(e) in known for e in part) for name, part in others.items()}
    return [
        f"{count} of the {len(others[name])} {name} examples also occur in the training examples"
        for name, count in shared.items()
        if count
    ]


def _hold_out(recipe: Recipe, examples: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split off development examples; examples with the same input stay together."""
    count = min(max(1, round(recipe.training.held_out * len(examples))), LARGEST_HELD_OUT)
    input_key = recipe.task.input_key(examples)
    groups: dict[Hashable, list[int]] = {}
    for place, example in enumerate(examples):
        groups.setdefault(input_key(example), []).append(place)
    if len(groups) < 2:
        raise FenchelError(
            f"holding out development examples requires two different inputs, got {len(groups)}: "
            "pass --dev FILE"
        )
    generator = torch.Generator().manual_seed(recipe.training.seed)
    order = torch.randperm(len(examples), generator=generator).tolist()
    held: set[int] = set()
    for place in order:
        group = groups[input_key(examples[place])]
        if place not in held and len(held) + len(group) <= count:
            held.update(group)
    held = held or set(min(groups.values(), key=len))
    kept = [example for place, example in enumerate(examples) if place not in held]
    return kept, [examples[place] for place in sorted(held)]
