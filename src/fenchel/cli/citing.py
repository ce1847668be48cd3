"""`fenchel cite`: BibTeX for what a piece of work used."""

from __future__ import annotations

from typing import Annotated

import typer

from fenchel.bibliography import ENTRIES, USED_BY, citation
from fenchel.cli.console import write
from fenchel.recipes.names import unknown


def cite(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Maps, losses or layers that you used, such as entmax; all without any."
        ),
    ] = None,
) -> None:
    """Print the BibTeX entries of the papers behind what you used."""
    if not names:
        write(citation())
        return
    keys = []
    for name in names:
        if name not in USED_BY and name not in ENTRIES:
            raise unknown("method", name, sorted(USED_BY))
        keys += USED_BY.get(name, (name,))
    write("\n\n".join(ENTRIES[key] for key in dict.fromkeys(keys)))
