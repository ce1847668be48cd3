"""`fenchel data`: where the public data sets come from, and whether a folder holds one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fenchel.cli.console import grid, out, write
from fenchel.cli.program import program
from fenchel.errors import unknown


def data(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A data set; without one, all are listed.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="A folder to check.")
    ] = None,
) -> None:
    """Say where the papers' data sets come from, and check a folder that holds one.

    Nothing is downloaded: every set has its own terms. Exit code 1 says that a folder is not complete.
    """
    from fenchel.data.public_set_info import check_public_set, public_set_info, public_sets

    if name is None:
        rows = [(each.name, each.title, each.licence) for each in public_sets().values()]
        title = f"public data sets: {program()} data NAME"
        out.print(grid(title, ["name", "what", "licence"], rows))
        return
    if name not in public_sets():
        raise unknown("data set", name, public_sets(), "All data sets: fenchel data")
    known = public_set_info(name)
    if folder is None:
        count = sum(known.lines.values())
        for line in (known.title, known.url, f"licence: {known.licence}"):
            write(line)
        checks = f"{program()} data {name} FOLDER checks a copy"
        write(f"{len(known.lines)} files, {count} lines; {checks}")
        return
    found = check_public_set(name, folder)
    for sentence in found.report():
        write(sentence)
    if not found.complete:
        raise typer.Exit(1)
    write("Complete.")
