"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Measured = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE…",
        help="Examples with answers [default: the run's test set, else its dev set].",
    ),
]
Beam = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Hypotheses kept in search [default: the run's search.width]."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object.")]
