"""`fenchel train`: a recipe, a person's files, one folder."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fenchel.cli.console import note
from fenchel.cli.evaluation import evaluated, show
from fenchel.cli.program import program

if TYPE_CHECKING:
    from fenchel.recipes.reading import Splits


def train(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="See the list command.")],
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…",
            help="What to learn from: TSV, JSONL, two parallel files; also .xz, .gz.",
        ),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…", help="Chooses the best epoch; held out of --train if not given."
        ),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(metavar="FILE…", help="Measured once, at the end.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run's folder [default: runs/RECIPE].")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Passes over the data, at most [default: the recipe's]."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Of everything random [default: 0].")
    ] = None,
    devices: Annotated[
        str | None, typer.Option(help="How many GPUs or processes [default: auto].")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many machines [default: 1].")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="How they work together: ddp, … [default: auto].")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting: see list --settings RECIPE."),
    ] = None,
) -> None:
    """Train a model. The same command goes on with a run that was stopped.

    Without --train, inflection learns from the four languages that come with the package.
    """
    from fenchel.cli.epochs import teller
    from fenchel.recipes import recipe as make
    from fenchel.recipes.reading import splits
    from fenchel.recipes.running import learn

    shortcuts = {"epochs": epochs, "seed": seed, "devices": devices, "nodes": nodes}
    given = {**shortcuts, "strategy": strategy}.items()
    chosen = [f"training.{key}={value}" for key, value in given if value is not None]
    recipe = make(name, [*chosen, *(changes or [])])
    folder = out or Path("runs") / name
    files = {"train": train or [], "dev": dev or [], "test": test or []}
    data = splits(recipe, **files)
    first = is_first_process()
    if first:
        for sentence in data.notes:
            note(sentence)
        note(f"the run is in {folder}; the same command goes on with it if it is stopped")
    known = {split: paths for split, paths in files.items() if paths}
    result = learn(recipe, data, folder, files=known, report=teller())
    if first:
        _conclude(folder, data, finished=result.finished)


def _conclude(folder: Path, data: Splits, *, finished: bool) -> None:
    """Say how training ended, measure the run, and say what can be done with it."""
    from fenchel.recipes.running import Trained

    if not finished:
        note("time ran out before the last epoch; the same command goes on")
    trained, split = Trained.load(folder), "test" if data.test else "dev"
    figures = evaluated(trained, data.test or data.dev, split)
    show(figures, trained.recipe.metric, split)
    run = shlex.quote(str(folder))
    note(f"next: {program()} predict {run} FILE, {program()} report {run}")


def is_first_process() -> bool:
    """Whether this is the process that speaks, of those that train together."""
    ranks = (os.environ.get(name, "0") for name in ("LOCAL_RANK", "NODE_RANK"))
    return all(rank == "0" for rank in ranks)
