"""One run of an experiment: trained, or gone on with, and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fenchel.recipes import Recipe
from fenchel.recipes.figures import Figures, figures_of, keep_figures
from fenchel.recipes.reading import Splits
from fenchel.recipes.reproductions.origin import commit, sources
from fenchel.recipes.reproductions.source import Source
from fenchel.recipes.running import Trained, learn
from fenchel.training import Run
from fenchel.training.progress import Record


@dataclass(frozen=True)
class Voice:
    """How a run is heard.

    Args:
        say: called with a sentence.
        report: called with the name of the run and the record of every validation; None shows a
            progress bar where there is a terminal.
    """

    say: Callable[[str], object]
    report: Callable[[str, Record], None] | None


@dataclass(frozen=True)
class Measured:
    """The figures of a run by the part of the data; `finished` is false if time ran out."""

    figures: dict[str, Figures]
    finished: bool


@dataclass(frozen=True)
class Job:
    """A run to be made.

    Args:
        name: of the experiment, with what tells the run from others.
        folder: where the run is kept.
        recipe: its settings.
        source: its data.
        splits: the parts of the data that it is measured with.
    """

    name: str
    folder: Path
    recipe: Recipe
    source: Source
    splits: tuple[str, ...]

    def __call__(self, voice: Voice) -> Measured:
        """Train and measure; a run that ran out of time is measured with its best weights so far."""
        way = _way(self.recipe)
        data = self.source.splits()
        voice.say(f"{self.name}: {self.folder}; {', '.join(data.notes)}")
        heard = voice.report
        result = learn(
            self.recipe,
            data,
            self.folder,
            public=self.source.public,
            report=None if heard is None else lambda record: heard(self.name, record),
            progress_bar=heard is None,
        )
        if not result.finished:
            epochs = f"{result.history[-1]['epoch']:.0f} of {self.recipe.training.epochs} epochs"
            voice.say(f"{self.name}: time ran out after {epochs}; the same command goes on")
        found = {split: self._measured(data, split, way) for split in self.splits}
        return Measured(found, result.finished)

    def _measured(self, data: Splits, split: str, way: Figures) -> Figures:
        """The figures on a part of the data, those kept in the run where they were found this way.

        Training removes them with every better model.
        """
        run = Run.load(self.folder)
        kept = run.metrics.get(f"{split}_search", {})
        if {name: kept.get(name) for name in way} == way:
            return kept
        trained = Trained(run, replace(self.recipe, model=run.model_config), {})
        figures = figures_of(trained, getattr(data, split))[0] | way
        keep_figures(run, split, figures)
        return figures


def _way(recipe: Recipe) -> Figures:
    """How figures are found: by which search, and by which sources as they are now."""
    return {"search": asdict(recipe.search), "commit": commit(), "sources": sources()}
