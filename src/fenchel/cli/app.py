"""The application: all commands, in the order of `fenchel --help`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

import fenchel
from fenchel.cli.analyze import analyze
from fenchel.cli.bench import bench
from fenchel.cli.cite import cite
from fenchel.cli.compare import compare
from fenchel.cli.console import write
from fenchel.cli.data import data
from fenchel.cli.evaluate import evaluate
from fenchel.cli.listing import list_all
from fenchel.cli.predict import predict
from fenchel.cli.program import program
from fenchel.cli.report import report
from fenchel.cli.reproduce import reproduce
from fenchel.cli.resume import resume
from fenchel.cli.train import train

HELP = f"""Train sparse models on your own files, and see what they attend to.

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
app.command()(resume)
app.command()(evaluate)
app.command()(predict)
app.command()(analyze)
app.command()(report)
app.command()(compare)
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


def make_command() -> Any:
    """The application as a command whose help shows flags without a type and arguments without braces."""
    command: Any = typer.main.get_command(app)
    root = typer.Context(command, **command.context_settings)
    for each in (command, *command.commands.values()):
        context = typer.Context(each, parent=root, **each.context_settings)
        for parameter in (*each.params, each.get_help_option(context)):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
            if getattr(parameter, "param_type_name", "") == "argument":
                parameter.get_usage_pieces = partial(_usage, parameter)
    return command


def _usage(argument: Any, context: Any) -> list[str]:
    """An argument in the line of usage: RUN, [FILE], RUN..."""
    name = argument.metavar if argument.required else f"[{argument.metavar}]"
    return [name if argument.nargs == 1 else f"{name}..."]
