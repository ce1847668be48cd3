"""How `fenchel predict` shows its answers: as the options and the output ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fenchel import plot
from fenchel.analysis.wording import SENTENCES, asked, proof
from fenchel.cli.answers import as_lines, as_object, as_table
from fenchel.cli.console import out, write, write_json
from fenchel.cli.searching import Searching
from fenchel.data import Example
from fenchel.errors import rule
from fenchel.recipes.running import Trained
from fenchel.search import Answer, Lattice

View = Callable[[Sequence[Example], Sequence[Answer]], None]


@dataclass(frozen=True)
class Wishes:
    """What the options ask for.

    Args:
        most: answers printed an example.
        lattice, autocomplete: draw the answers as a lattice, show the candidates after every symbol.
        as_json: one object an example.
        picture: a file for a picture of the first example.
    """

    most: int
    lattice: bool
    autocomplete: bool
    as_json: bool
    picture: Path | None


def view(trained: Trained, searching: Searching, wishes: Wishes) -> View:
    """The function that shows examples with their answers."""
    codec = trained.run.codec
    separator = "" if trained.recipe.data.segmentation == "characters" else " "

    def name(token: int) -> str:
        return codec.target_vocabulary.symbols([token])[0]

    def show_drawn(example: Example, answer: Answer) -> None:
        write(f"{asked(example, codec)}  ({SENTENCES[proof(answer)]})")
        if wishes.lattice:
            write(Lattice.of(answer).text(name, separator=separator))
        if wishes.autocomplete:
            write(searching.completion(example, answer.best.tokens).text(name))

    def show(examples: Sequence[Example], answers: Sequence[Answer]) -> None:
        drawn = wishes.lattice or wishes.autocomplete
        if out.is_terminal and not drawn and not wishes.as_json:
            out.print(as_table(examples, answers, codec, wishes.most))
        else:
            for example, answer in zip(examples, answers, strict=True):
                if wishes.as_json:
                    write_json(as_object(example, answer, codec))
                elif drawn:
                    show_drawn(example, answer)
                else:
                    write("\n".join(as_lines(example, answer, codec, wishes.most)))
        if wishes.picture is not None:
            save_picture(wishes.picture, examples[0], answers[0])

    def save_picture(path: Path, example: Example, answer: Answer) -> None:
        if wishes.autocomplete:
            axes: Any = plot.autocompletion(searching.completion(example, answer.best.tokens), name)
        else:
            axes = plot.lattice(answer, name, title=asked(example, codec))
        try:
            axes.figure.savefig(path)
        except (OSError, ValueError) as error:
            raise rule(
                "the picture can be written", expected="a .png or .svg", got=error
            ) from error

    return show
