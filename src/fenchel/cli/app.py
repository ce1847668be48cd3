"""The commands, in the order in which a person meets them."""

from __future__ import annotations

from typing import Annotated

import typer

import fenchel
from fenchel.cli.benching import bench
from fenchel.cli.citing import cite
from fenchel.cli.console import write
from fenchel.cli.evaluation import evaluate
from fenchel.cli.listing import list_all
from fenchel.cli.official import data
from fenchel.cli.prediction import predict
from fenchel.cli.program import program
from fenchel.cli.reporting import report
from fenchel.cli.reproduction import reproduce
from fenchel.cli.training import train

HELP = f"""Train sparse sequence models on your own files, and see what they look at.

A first run, on the languages that come with the package:

    {program()} train inflection --out runs/first

    {program()} predict runs/first words.tsv --language english

    {program()} report runs/first
"""

app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

app.command("list")(list_all)
app.command()(train)
app.command()(evaluate)
app.command()(predict)
app.command()(report)
app.command()(data)
app.command()(reproduce)
app.command(context_settings=PASSED_ON)(bench)
app.command()(cite)


def _version(wanted: bool) -> None:
    if wanted:
        write(f"fenchel {fenchel.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""
