"""`fenchel train`: a recipe and files to a run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fenchel.cli.console import note, on_validation
from fenchel.cli.evaluate import evaluate_run, show
from fenchel.cli.options import ColumnNames, SkipBad, parse_columns
from fenchel.cli.program import program
from fenchel.errors import FenchelError

if TYPE_CHECKING:
    from fenchel.training import DataSource, Recipe
    from fenchel.training.progress import Progress


def train(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE", help="A recipe of the list command; --config may name it."
        ),
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…",
            help="Training examples in the form of the recipe: TSV, JSONL, …; also .xz, .gz.",
        ),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…",
            help="Examples to select the best epoch with; held out of --train if not given.",
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE…", help="Examples to evaluate the best epoch with."),
    ] = None,
    columns: ColumnNames = None,
    skip_bad: SkipBad = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the run [default: runs/RECIPE].")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Maximum number of epochs [default: the recipe's]."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Random seed [default: 0].")
    ] = None,
    devices: Annotated[
        str | None, typer.Option(help="Number of GPUs or processes [default: auto].")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of machines [default: 1].")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="Strategy of several processes, such as ddp [default: auto].")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings by name: small trains within minutes on a CPU.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Settings in JSON or YAML, such as the config.json of a run."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting: see list --settings RECIPE."),
    ] = None,
) -> None:
    """Train a model. The same command resumes a run that was stopped.

    Without --train, inflection trains on the four languages that come with the package.
    """
    from fenchel.recipes import make_recipe
    from fenchel.training import DataSource
    from fenchel.training.recipe import StoredConfig

    stored = None if config is None else StoredConfig.load(config)
    name = name or (stored and stored.recipe)
    if name is None:
        raise FenchelError("RECIPE must be given, or --config with the config.json of a run")
    shortcuts = {"epochs": epochs, "seed": seed, "devices": devices, "nodes": nodes}
    given = {**shortcuts, "strategy": strategy}.items()
    chosen = [f"training.{key}={value}" for key, value in given if value is not None]
    recipe = make_recipe(name, [*chosen, *(changes or [])], preset, stored)
    files = {"train": train or [], "dev": dev or [], "test": test or []}
    source = DataSource.of_files(files, parse_columns(columns), skip_bad=skip_bad)
    if not source.files and stored is not None:
        skip_bad = skip_bad or stored.skip_bad
        source = DataSource.of_files(stored.files, stored.columns, skip_bad=skip_bad)
    unchanged = preset is None and stored is None and not changes
    train_run(recipe, source, out or Path("runs") / name, advise_small=unchanged)


def train_run(
    recipe: Recipe, source: DataSource, folder: Path, *, advise_small: bool = False
) -> None:
    """Train or resume a run, evaluate it, and print what can be done with it."""
    from fenchel.training import fit
    from fenchel.training.device import best_device

    splits = source.splits(recipe)
    first = is_first_process()
    if first:
        for sentence in splits.notes:
            note(sentence)

    def on_start(progress: Progress, finished: bool) -> None:
        if not first:
            return
        if finished:
            note(f"the run is finished: nothing is left to train in {folder}")
            return
        note(f"the run is in {folder}; the same command resumes it if it is stopped")
        if progress.history:
            note(f"resuming after epoch {progress.history[-1]['epoch']:.0f}")
        elif progress.segments:
            note("resuming in epoch 1")
        elif advise_small and not recipe.task.fits_directly and best_device().type == "cpu":
            note("no GPU found: --preset small trains a smaller model within minutes")

    report = on_validation(recipe.task.describe_means)
    result = fit(folder, recipe, splits, source=source, on_start=on_start, on_validation=report)
    if not first:
        return
    if not result.finished:
        note("time ran out before the last epoch; the same command resumes training")
    for remark in result.remarks:
        note(remark)
    if splits.test or splits.dev:
        split = "test" if splits.test else "dev"
        evaluation = evaluate_run(result.run, splits.test or splits.dev, split)
        show(result.run, evaluation, split)
    run = shlex.quote(str(folder))
    note(f"next: {program()} predict {run} FILE, {program()} report {run}")


def is_first_process() -> bool:
    """Whether this is the process that prints, of those that train together."""
    ranks = (os.environ.get(name, "0") for name in ("LOCAL_RANK", "NODE_RANK"))
    return all(rank == "0" for rank in ranks)
