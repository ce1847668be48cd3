"""`fenchel analyze`: what the attention heads of a run do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fenchel.cli.console import grid, note, out, progress_bar, warn_skipped, write, write_json
from fenchel.cli.options import AsJson, ColumnNames, Data, RunFolder, SkipBad, parse_columns
from fenchel.data.bad_items import BadItems

IN_FILE_ONLY = ("examples", "unsure")  # weights, too long to print


def analyze(
    folder: RunFolder,
    data: Data = None,
    columns: ColumnNames = None,
    skip_bad: SkipBad = False,
    interrogatives: Annotated[
        str,
        typer.Option(
            metavar="LANGUAGE|WORDS",
            help="Interrogative words: de, en, fr, ja, or words separated by commas.",
        ),
    ] = "en",
    threshold: Annotated[
        float,
        typer.Option(
            metavar="SHARE", min=0, max=1, help="Confidence from which on a head has a role."
        ),
    ] = 0.8,
    examples: Annotated[
        int, typer.Option(metavar="N", min=0, help="Sentences whose attention is written.")
    ] = 6,
    file: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The JSON file [default: RUN/analysis.json]."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the attention heads of a run: α, density, diversity and roles.

    Prints the layers, the heads with a role and the spread of α. The JSON file also has the attention of
    the first sentences, the sentences of which each head is least sure, and the course of α in training.
    """
    from fenchel.analysis import alpha_trajectories
    from fenchel.analysis.run_heads import heads_of_run
    from fenchel.report import read_log
    from fenchel.tasks import load_run
    from fenchel.training.files import write_atomically

    run = load_run(folder)
    bad = BadItems(skip_bad or run.source.skip_bad)
    split, measured = run.evaluation_examples(data or [], parse_columns(columns), bad)
    warn_skipped(bad)
    words = interrogatives.split(",") if "," in interrogatives else interrogatives
    with progress_bar(f"analyzing {split}", len(measured)) as progress:
        table = heads_of_run(
            run,
            measured,
            interrogatives=words,
            threshold=threshold,
            kept=examples,
            progress=progress,
        )
    title = ", ".join(data or [split])
    result = {"data": title, **table.to_json()}
    result["trajectories"] = alpha_trajectories(read_log(run.log_path))
    path = file or run.path / "analysis.json"
    text = json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode()))
    if as_json:
        write_json({name: part for name, part in result.items() if name not in IN_FILE_ONLY})
        note(str(path))
        return
    for part in table.tables():
        out.print(grid(part.caption, part.columns, part.rows))
    write(str(path))
