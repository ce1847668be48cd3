"""Runs of several seeds as one model: their probabilities averaged at every step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fenchel.errors import rule
from fenchel.recipes import Recipe
from fenchel.recipes.figures import Figures, best_device
from fenchel.recipes.reproductions.job import Voice
from fenchel.recipes.reproductions.source import Source
from fenchel.training import Run, predict, score


@dataclass(frozen=True)
class Ensemble:
    """An ensemble to be measured.

    Args:
        name: of the experiment.
        folders: of its runs.
        recipe: says how answers are searched and compared.
        source, split: the data to measure with.
    """

    name: str
    folders: tuple[Path, ...]
    recipe: Recipe
    source: Source
    split: str

    def __call__(self, voice: Voice) -> Figures:
        """The figures of the ensemble's answers."""
        voice.say(f"{self.name}: ensemble of {len(self.folders)} runs")
        runs = [Run.load(folder) for folder in self.folders]
        first, *others = [run.codec.state() for run in runs]
        if any(other != first for other in others):
            expected, got = "the same training data", "different vocabularies"
            raise rule("the runs of an ensemble speak alike", expected=expected, got=got)
        examples = getattr(self.source.splits(), self.split)
        search = self.recipe.search
        answers = predict(
            [run.model for run in runs],
            runs[0].codec,
            examples,
            width=search.width,
            batch_size=search.sentences,
            max_length=search.max_length,
            device=best_device(),
        )
        return score(answers, examples, runs[0].codec, self.recipe.metric).state()
