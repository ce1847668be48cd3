"""`fenchel evaluate`: the figures of a run on its test set, or on any file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fenchel.analysis.figures import explained
from fenchel.cli.console import grid, note, out, warn, write_json
from fenchel.cli.options import AsJson, Beam, Measured, RunFolder
from fenchel.cli.progress import counting

if TYPE_CHECKING:
    from fenchel.data import Example
    from fenchel.recipes.running import Trained


def evaluate(
    folder: RunFolder, data: Measured = None, beam: Beam = None, as_json: AsJson = False
) -> None:
    """Measure a run: accuracy, BLEU or ROUGE, supports, and how many answers are proven."""
    from fenchel.recipes.running import Trained

    trained = Trained.load(folder)
    split, examples = trained.examples(data or [])
    figures = evaluated(trained, examples, split, beam=beam, keep=not data and beam is None)
    if as_json:
        write_json(figures)
    else:
        show(figures, trained.recipe.metric, ", ".join(data or [split]))


def evaluated(
    trained: Trained,
    examples: Sequence[Example],
    split: str,
    *,
    beam: int | None = None,
    keep: bool = True,
) -> dict[str, object]:
    """The figures of a run; they are kept in its folder unless the data or the search are others."""
    from fenchel.recipes.figures import figures_of

    with counting(f"answering {split}", len(examples)) as progress:
        figures, _ = figures_of(trained, examples, width=beam, progress=progress)
    if keep:
        _keep(trained, split, figures)
    return figures


def _keep(trained: Trained, split: str, figures: dict[str, object]) -> None:
    """Keep the figures in the run's folder; where nothing can be written they are only shown."""
    from fenchel.recipes.figures import keep_figures

    try:
        keep_figures(trained.run, split, figures)
    except OSError as error:
        warn(f"the figures are not kept in {trained.run.path}: {error.strerror or error}")


def show(figures: Mapping[str, object], metric: str, title: str) -> None:
    """Print the figures, the main one first."""
    out.print(grid(title, ["figure", "value", "meaning"], explained(figures, metric)))
    if figures.get("signature"):
        note(str(figures["signature"]))
    groups = figures.get("groups")
    if isinstance(groups, Mapping) and 1 < len(groups) <= 12:
        out.print(grid("by language", ["language", metric], list(groups.items())))
    elif isinstance(groups, Mapping) and len(groups) > 12:
        note(f"{len(groups)} languages; --json lists each")
