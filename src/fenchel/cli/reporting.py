"""`fenchel report`: one HTML page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fenchel.cli.console import note, write
from fenchel.cli.options import Measured, RunFolder
from fenchel.cli.progress import counting


def report(
    folder: RunFolder,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page [default: RUN/report.html].")
    ] = None,
    data: Measured = None,
    examples: Annotated[
        int, typer.Option(metavar="N", min=0, help="Examples shown with their answers.")
    ] = 6,
) -> None:
    """Write a page with figures, training curves, supports, attention maps and lattices.

    The page is one file that needs no network.
    """
    from fenchel.analysis.of_run import report_of
    from fenchel.analysis.report import page
    from fenchel.recipes.running import Trained

    trained = Trained.load(folder)
    split, measured = trained.examples(data or [])
    path = out or folder / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    with counting(f"answering {split}", len(measured)) as progress:
        content = page(report_of(trained, measured, split, shown=examples, progress=progress))
    path.write_text(content, encoding="utf-8")
    note(f"{len(content.encode()) // 1024} KB")
    write(str(path))
