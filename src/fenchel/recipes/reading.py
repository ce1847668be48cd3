"""The examples of a run: from a person's files, or from the languages that come with the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fenchel.data import Example, read_inflection, read_parallel, shipped
from fenchel.data.lines import plain_name
from fenchel.data.normalization import Normalization, normalized
from fenchel.data.records import JSON_ENDINGS
from fenchel.errors import rule
from fenchel.recipes.recipe import DataConfig, Recipe

Paths = Sequence[str]
Question = tuple[str, tuple[str, ...]]
COLUMNS = {"inflection": "lemma<tab>form<tab>tags", "parallel": "source<tab>target"}
RECORDS = (".tsv", *JSON_ENDINGS)
LARGEST_HELD_OUT = 2000
SHIPPED = "the languages that come with fenchel"


@dataclass(frozen=True)
class Splits:
    """Examples to learn from, to choose the best epoch by, and to measure with; `notes` say whence."""

    train: list[Example]
    dev: list[Example]
    test: list[Example]
    notes: tuple[str, ...] = ()


def read(
    data: DataConfig, paths: Paths, *, need_targets: bool, language: str | None = None
) -> list[Example]:
    """The examples of some files, in the order given.

    Two files of a pair of languages whose names are not those of records (.tsv, .jsonl) are the
    sources and the targets, line by line.
    """
    if data.format == "inflection":
        return read_inflection(paths, language, need_targets=need_targets)
    if len(paths) == 2 and not any(plain_name(path).endswith(RECORDS) for path in paths):
        return read_parallel(*paths)
    return [e for path in paths for e in read_parallel(path, need_targets=need_targets)]


def splits(recipe: Recipe, train: Paths, dev: Paths, test: Paths) -> Splits:
    """The data of a run; without files, the shipped set where the recipe has one."""
    if not train:
        return _shipped(recipe, dev, test)
    examples = read(recipe.data, train, need_targets=True)
    notes = [f"learning from {len(examples)} examples"]
    if dev:
        chosen = read(recipe.data, dev, need_targets=True)
    else:
        examples, chosen = _held_out(recipe, examples)
        notes.append(f"without --dev, {len(chosen)} of them are held out to choose the best epoch")
    measured = read(recipe.data, test, need_targets=True) if test else []
    notes += _also_learned(examples, {"dev": chosen, "test": measured}, recipe.data.normalization)
    return Splits(examples, chosen, measured, tuple(notes))


def _questions(examples: list[Example], form: Normalization) -> Callable[[Example], Question]:
    """What an example asks of a model that has learned from these examples."""
    several = len({example.group for example in examples}) > 1

    def question(example: Example) -> Question:
        hidden = example.has_language and not several  # a model of one language does not see it
        source = normalized(example.source, form)
        return source, example.tags[1:] if hidden else example.tags

    return question


def _also_learned(
    learned: list[Example], others: dict[str, list[Example]], form: Normalization
) -> list[str]:
    """What is said of parts whose questions are also asked in training: their figures flatter."""
    question = _questions(learned, form)
    asked = {question(example) for example in learned}
    shared = {name: sum(question(e) in asked for e in part) for name, part in others.items()}
    return [
        f"{count} of the {len(others[name])} examples of {name} are also asked in training"
        for name, count in shared.items()
        if count
    ]


def _shipped(recipe: Recipe, dev: Paths, test: Paths) -> Splits:
    if recipe.data.format != "inflection":
        raise rule(
            f"{recipe.name} needs examples to learn from",
            expected=f"--train FILE of lines {COLUMNS[recipe.data.format]}",
            got="no --train",
        )
    if dev or test:
        given = "--dev" if dev else "--test"
        raise rule("the shipped data come whole", expected="--train FILE", got=f"{given} alone")
    sets = shipped()
    languages = sorted({example.group for example in sets["train"]})
    count = len(sets["train"])
    note = f"no --train: learning from {count} examples of {SHIPPED} ({', '.join(languages)})"
    return Splits(sets["train"], sets["dev"], sets["test"], (note,))


def _held_out(recipe: Recipe, examples: list[Example]) -> tuple[list[Example], list[Example]]:
    """Some of the examples, the same ones for the same seed, kept away from training.

    Those that ask the same go together: what is held out is not asked in training.
    """
    count = min(max(1, round(recipe.data.held_out * len(examples))), LARGEST_HELD_OUT)
    question = _questions(examples, recipe.data.normalization)
    alike: dict[Question, list[int]] = {}
    for place, example in enumerate(examples):
        alike.setdefault(question(example), []).append(place)
    if len(alike) < 2:
        expected, got = "two different questions or --dev", len(alike)
        raise rule("examples can be held out", expected=expected, got=got)
    generator = torch.Generator().manual_seed(recipe.training.seed)
    order = torch.randperm(len(examples), generator=generator).tolist()
    held: set[int] = set()
    for place in order:
        together = alike[question(examples[place])]
        if place not in held and len(held) + len(together) <= count:
            held.update(together)
    held = held or set(min(alike.values(), key=len))
    kept = [example for place, example in enumerate(examples) if place not in held]
    return kept, [examples[place] for place in sorted(held)]


def absolute(paths: Paths) -> list[str]:
    """Paths that can be found again from anywhere."""
    return [str(Path(path).resolve()) for path in paths]
