"""A recipe and its data to a run, and a run to its recipe, its data and its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fenchel.data import Codec, Encoded, Example, shipped
from fenchel.errors import rule
from fenchel.recipes.public import PublicSet
from fenchel.recipes.reading import Paths, Splits, absolute, read, splits
from fenchel.recipes.recipe import Recipe
from fenchel.schema import from_json
from fenchel.training import Run, RunResult, fit
from fenchel.training.progress import Record
from fenchel.training.run import digest

Files = Mapping[str, Sequence[str]]


def learn(
    recipe: Recipe,
    data: Splits,
    folder: str | Path,
    *,
    files: Files | None = None,
    public: PublicSet | None = None,
    report: Callable[[Record], None] | None = None,
    progress_bar: bool = True,
) -> RunResult:
    """Train the recipe's model into a folder, or go on with it.

    `files` or `public` say where the data came from, so that the run can find them again; without
    either they are those of the package.
    """
    codec = codec_of(recipe, data.train)
    kept = {name: absolute(paths) for name, paths in (files or {}).items()}
    return fit(
        folder,
        recipe.model,
        recipe.training,
        codec,
        data.train,
        data.dev,
        recipe={
            "recipe": recipe.state(),
            "files": kept,
            "public": None if public is None else public.state(),
        },
        report=report,
        progress_bar=progress_bar,
    )


def codec_of(recipe: Recipe, examples: Sequence[Example]) -> Codec:
    """The segmentation and the vocabularies of a training set, as the recipe wants them."""
    return Codec.fit(
        examples,
        segmentation=recipe.data.segmentation,
        merges=recipe.data.merges,
        joint=recipe.data.joint,
        min_count=recipe.data.min_count,
        normalization=recipe.data.normalization,
    )


@dataclass(frozen=True)
class _Origin:
    """What `learn` keeps in a run."""

    recipe: Recipe
    files: dict[str, list[str]] = field(default_factory=dict)
    public: PublicSet | None = None


@dataclass(frozen=True)
class Trained:
    """A run that a recipe made."""

    run: Run
    recipe: Recipe
    files: Files
    public: PublicSet | None = None

    @classmethod
    def load(cls, folder: str | Path) -> Trained:
        """The run in a folder, with its recipe."""
        run = Run.load(folder)
        kept = run.recipe or {}
        if "recipe" not in kept:
            got = f"a run in {folder} that knows none"
            raise rule("a run knows its recipe", expected="one made by fenchel train", got=got)
        origin = from_json(_Origin, kept, f"{folder}/config.json", "recipe")
        recipe = replace(origin.recipe, model=run.model_config)
        return cls(run, recipe, origin.files, origin.public)

    def examples(self, paths: Paths = ()) -> tuple[str, list[Example]]:
        """What to measure with, and its name: these files, else the run's test set, else its dev set.

        A dev set that was held out of the training files is held out of them again.
        """
        if paths:
            return "data", read(self.recipe.data, paths, need_targets=True)
        if self.public is not None:
            return "test", self.public.splits()["test"]
        for split in ("test", "dev"):
            if self.files.get(split):
                return split, read(self.recipe.data, self.files[split], need_targets=True)
        if self.files.get("train"):
            return "dev", self._held_out()
        if self.recipe.data.format == "inflection":
            return "test", shipped()["test"]
        raise rule("the run has a test or a dev set", expected="--data FILE", got="neither")

    def _held_out(self) -> list[Example]:
        found = splits(self.recipe, self.files["train"], [], [])
        if digest(Encoded.of(found.train, self.run.codec)) != self.run.data:
            statement = "the files that the run has learned from are as they were"
            raise rule(statement, expected="the same examples, or --data FILE", got="others")
        return found.dev
