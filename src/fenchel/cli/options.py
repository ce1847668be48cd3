"""Arguments and options that several commands have, and those that tasks add."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from fenchel.errors import FenchelError
from fenchel.settings import field_docstrings
from fenchel.tasks import TASKS
from fenchel.training import Run

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Data = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE…",
        help="Examples with targets [default: the run's test set, else its development set].",
    ),
]
ColumnNames = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="FIELD=NAME",
        help="Name of a field's column or JSON key where it differs from the field's; repeatable.",
    ),
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad", help="Skip bad lines of the files and count them; else the first is an error."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def parse_columns(names: list[str] | None) -> dict[str, str]:
    """Fields and the names of their columns.

    >>> parse_columns(["target=answer"])
    {'target': 'answer'}
    """
    columns = {}
    for pair in names or []:
        field, equals, name = pair.partition("=")
        if not (field and equals and name):
            raise FenchelError(f"--columns must be FIELD=NAME, got {pair!r}")
        columns[field] = name
    return columns


def data_options(data: list[str] | None, columns: list[str] | None, *, skip_bad: bool) -> list[str]:
    """The options that choose the examples of a command, as words of a command line.

    >>> data_options(["a.tsv"], ["target=answer"], skip_bad=False)
    ['--data=a.tsv', '--columns=target=answer']
    """
    files = [f"--data={each}" for each in data or []]
    names = [f"--columns={each}" for each in columns or []]
    return files + names + (["--skip-bad"] if skip_bad else [])


def with_task_options(attribute: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of all tasks to a command, which gets those given as the dictionary `given`.

    Args:
        attribute: The attribute of `Task` that holds the dataclass of the options.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        added = _parameters(attribute)

        def with_options(**values: Any) -> None:
            given = {name: values.pop(name) for name in added}
            defaults = {name: parameter.default for name, parameter in added.items()}
            command(**values, given={k: v for k, v in given.items() if v != defaults[k]})

        own = inspect.signature(command, eval_str=True).parameters
        kept = [parameter for name, parameter in own.items() if name != "given"]
        every = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in kept]
        with_options.__signature__ = inspect.Signature([*every, *added.values()])  # type: ignore[attr-defined]
        with_options.__annotations__ = {each.name: each.annotation for each in every}
        with_options.__annotations__ |= {name: each.annotation for name, each in added.items()}
        with_options.__doc__, with_options.__name__ = command.__doc__, command.__name__
        return with_options

    return decorate


def task_options(run: Run, attribute: str, given: dict[str, Any]) -> Any:
    """The options of a run's task with the values given; an option of another task is an error."""
    owner = getattr(run.task, attribute)
    known = {field.name for field in fields(owner)}
    for name in given:
        if name not in known:
            option = name.replace("_", "-")
            raise FenchelError(f"--{option} cannot be used with a run of the task {run.task.kind}")
    return owner(**given)


def _parameters(attribute: str) -> dict[str, inspect.Parameter]:
    """The options of all tasks by name; the help names the tasks that have an option."""
    found: dict[str, list[tuple[type, Field[Any]]]] = {}
    kinds: dict[str, list[str]] = {}
    for load in TASKS.values():
        task = load()
        owner = getattr(task, attribute)
        for field in fields(owner):
            found.setdefault(field.name, []).append((owner, field))
            kinds.setdefault(field.name, []).append(task.kind)
    return {name: _parameter(*found[name][0], kinds[name]) for name in found}


def _parameter(owner: type, field: Field[Any], kinds: list[str]) -> inspect.Parameter:
    declared = get_type_hints(owner)[field.name]
    option = typer.Option(
        *([f"--{field.name.replace('_', '-')}"] if declared is bool else []),
        help=field_docstrings(owner).get(field.name, ""),
        rich_help_panel=f"Options of the tasks {', '.join(kinds)}",
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[declared, option],
    )
