"""`fenchel resume`: continue the training of a stopped run."""

from __future__ import annotations

from typing import Annotated

import typer

from fenchel.cli.options import RunFolder
from fenchel.cli.train import train_run


def resume(
    folder: RunFolder,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Settings that may change, such as epochs, max_seconds and those of the search.",
        ),
    ] = None,
) -> None:
    """Resume the training of a run with its stored settings, on the files that it was started with."""
    from fenchel.settings import override
    from fenchel.tasks import load_run

    run = load_run(folder)
    train_run(override(run.recipe, changes or []), run.source, folder)
