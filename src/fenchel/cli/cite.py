"""`fenchel cite`: BibTeX entries of the papers behind maps, losses and layers."""

from __future__ import annotations

from typing import Annotated

import typer

from fenchel.bibliography import citation
from fenchel.cli.console import write


def cite(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Maps, losses or layers that you used, such as entmax [default: all].",
        ),
    ] = None,
) -> None:
    """Print the BibTeX entries of the papers behind what you used."""
    write(citation(*(names or ())))
