"""`fenchel predict`: answers with probabilities and proofs, for a file, a pipe or a person."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fenchel.cli.console import note, out, warn
from fenchel.cli.progress import counting
from fenchel.errors import FenchelError, rule

if TYPE_CHECKING:
    from fenchel.cli.searching import Searching
    from fenchel.cli.view import View
    from fenchel.data import Example
    from fenchel.recipes.running import Trained

SHOWN_ON_A_TERMINAL = 5


def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Lines to answer; - is standard input.")
    ] = "-",
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept in search.")] = None,
    answers: Annotated[
        int | None,
        typer.Option(min=1, help="Answers printed a line [default: 5 on a terminal, else 1]."),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Search on until the best is proven.")
    ] = False,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Draw so many answers instead.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the samples.")] = 0,
    lattice: Annotated[
        bool, typer.Option("--lattice", help="Draw all answers as a lattice.")
    ] = False,
    autocomplete: Annotated[
        bool, typer.Option("--autocomplete", help="Show the candidates after every symbol.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture of the first line's lattice, or candidates."),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Of inflection, where lines do not say.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Answer lines of a file or of standard input.

    A line of inflection is lemma<tab>tags, of translation and summarization the source. The result
    has, between tabs: what was asked, the answer, its probability, and what is proven of it: only (all
    probability is on it), complete (these are all answers of non-zero probability), best (no answer is
    more probable) or unproven.
    """
    from fenchel.cli.searching import Searching
    from fenchel.cli.view import Wishes, view
    from fenchel.recipes.running import Trained

    trained = Trained.load(folder)
    searching = Searching(trained, beam, exact=exact, samples=samples, seed=seed)
    most = answers or (SHOWN_ON_A_TERMINAL if out.is_terminal else 1)
    wishes = Wishes(max(most, samples or 0), lattice, autocomplete, as_json, picture)
    shown = view(trained, searching, wishes)
    if file == "-" and sys.stdin.isatty():
        _converse(trained, searching, shown, language)
    else:
        _answer(trained, searching, shown, _read(trained, file, language))


def _read(trained: Trained, file: str, language: str | None) -> list[Example]:
    from fenchel.recipes.reading import read

    examples = read(trained.recipe.data, [file], need_targets=False, language=language)
    languages = trained.run.codec.languages
    for place, example in enumerate(examples, start=1):
        if len(languages) > 1 and example.group not in languages:
            raise rule(
                f"line {place}: the run is of several languages",
                expected=f"--language with one of {', '.join(languages)}",
                got=repr(example.group) if example.group else "none",
            )
    return examples


def _answer(
    trained: Trained, searching: Searching, shown: View, examples: Sequence[Example]
) -> None:
    for place, example in enumerate(examples, start=1):
        unknown = trained.run.codec.unknown(example)
        if unknown:
            warn(f"line {place}: the model does not know {', '.join(map(repr, unknown))}")
    with counting("answering", len(examples)) as progress:
        found = searching(examples, progress)
    shown(examples, found)


def _converse(trained: Trained, searching: Searching, shown: View, language: str | None) -> None:
    """One line after the other, as a person types them."""
    from fenchel.cli.typed import how_to_type, typed_example

    note(f"type {how_to_type(trained)}; Ctrl-D ends")
    for line in sys.stdin:
        if line.strip():
            try:
                example = typed_example(trained, line, language)
            except FenchelError as error:
                warn(str(error))
                continue
            _answer(trained, searching, shown, [example])
