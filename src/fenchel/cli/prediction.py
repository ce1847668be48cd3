"""`fenchel predict`: answers with probabilities and proofs, for a file, a pipe or a person."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fenchel.cli.console import note, out, warn
from fenchel.cli.options import Beam, RunFolder
from fenchel.cli.progress import counting
from fenchel.errors import FenchelError, rule, unknown

if TYPE_CHECKING:
    from fenchel.cli.searching import Searching
    from fenchel.cli.view import View
    from fenchel.data import Codec, Example
    from fenchel.recipes.running import Trained

SHOWN_ON_A_TERMINAL = 5
MOST_WARNINGS = 10


def predict(
    folder: RunFolder,
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Lines to answer; - is standard input.")
    ] = "-",
    beam: Beam = None,
    answers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Answers to a line [default: 5 on a terminal, else 1]."
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Search on until the best is proven.")
    ] = False,
    samples: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Draw so many answers instead.")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**31 - 1, help="Of the samples.")
    ] = 0,
    lattice: Annotated[
        bool, typer.Option("--lattice", help="Draw all answers as a lattice.")
    ] = False,
    autocomplete: Annotated[
        bool, typer.Option("--autocomplete", help="Show the candidates after every symbol.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A picture (.png, .svg, .pdf) of the first line's lattice or candidates.",
        ),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Of inflection, where lines do not say.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Answer lines of a file or of standard input.

    A line of inflection is lemma and tags, with a tab between; of translation and summarization it is
    the source. The result has, between tabs: what was asked, the answer, its probability, and what is
    proven of it: only (all probability is on it), complete (all answers of non-zero probability are
    found), best (no answer is more probable) or unproven.
    """
    from fenchel.cli.searching import Searching
    from fenchel.cli.view import View, Wishes
    from fenchel.recipes.running import Trained

    most = answers or (SHOWN_ON_A_TERMINAL if out.is_terminal else 1)
    wishes = Wishes(max(most, samples or 0), lattice, autocomplete, as_json, picture)
    trained = Trained.load(folder)
    _check_language(language, trained.run.codec.languages)
    searching = Searching(
        trained, beam, answers=answers or 1, exact=exact, samples=samples, seed=seed
    )
    shown = View(trained.run.codec, searching, wishes)
    if file == "-" and sys.stdin.isatty():
        _converse(trained, searching, shown, language)
    else:
        _answer(trained, searching, shown, _read(trained, file, language))


def _check_language(language: str | None, known: Sequence[str]) -> None:
    if language is not None and known and language not in known:
        raise unknown("language of this run", language, known)


def _read(trained: Trained, file: str, language: str | None) -> list[Example]:
    from fenchel.data.inflection import language_of
    from fenchel.recipes.reading import read

    examples = read(trained.recipe.data, [file], need_targets=False, language=language)
    languages = trained.run.codec.languages
    for place, example in enumerate(examples, start=1):
        if len(languages) > 1 and example.group not in languages:
            by_name = " (the name of the file)" if example.group == language_of(file) else ""
            raise rule(
                f"{file}, example {place}: the run is of several languages",
                expected=f"a column or --language with one of {', '.join(languages)}",
                got=f"{example.group!r}{by_name}" if example.group else "none",
            )
    return examples


def _answer(
    trained: Trained, searching: Searching, shown: View, examples: Sequence[Example]
) -> None:
    _tell_unknown(trained.run.codec, examples)
    with counting("answering", len(examples)) as progress:
        found = searching(examples, progress)
    shown(examples, found)


def _tell_unknown(codec: Codec, examples: Sequence[Example]) -> None:
    """Warn of symbols that the model has never seen, and of whose they are if that is a question."""
    from fenchel.analysis.wording import named

    found = [(place, codec.unknown(example)) for place, example in enumerate(examples, start=1)]
    told = [(place, symbols) for place, symbols in found if symbols]
    for place, symbols in told[:MOST_WARNINGS]:
        whose = f"example {place} ({examples[place - 1].source[:40]}): " if len(found) > 1 else ""
        warn(f"{whose}the model does not know {', '.join(map(named, symbols))}")
    if len(told) > MOST_WARNINGS:
        warn(f"nor all symbols of {len(told) - MOST_WARNINGS} more examples")


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
