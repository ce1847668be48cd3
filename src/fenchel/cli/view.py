"""How `fenchel predict` shows its answers: as the options and the output ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fenchel import plot
from fenchel.analysis.picture import visible
from fenchel.analysis.wording import SENTENCES, asked, proof
from fenchel.cli.answers import BREAKS, as_lines, as_object, as_table
from fenchel.cli.console import out, write, write_json
from fenchel.cli.printable import printable
from fenchel.cli.searching import Searching
from fenchel.data import Codec, Example
from fenchel.errors import rule
from fenchel.search import Answer, Lattice

PICTURES = (".png", ".svg", ".pdf")


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

    def __post_init__(self) -> None:
        if self.as_json and (self.lattice or self.autocomplete):
            expected, got = "--json, or --lattice and --autocomplete", "both"
            raise rule("answers are written or drawn", expected=expected, got=got)
        if self.picture is not None and self.picture.suffix.lower() not in PICTURES:
            expected, got = f"a name that ends with {' or '.join(PICTURES)}", self.picture
            raise rule("the picture can be written", expected=expected, got=got)


@dataclass(frozen=True)
class View:
    """Shows examples with their answers."""

    codec: Codec
    searching: Searching
    wishes: Wishes

    def __call__(self, examples: Sequence[Example], answers: Sequence[Answer]) -> None:
        wishes, codec = self.wishes, self.codec
        drawn = wishes.lattice or wishes.autocomplete
        if out.is_terminal and not drawn and not wishes.as_json:
            out.print(as_table(examples, answers, codec, wishes.most, out.width))
        else:
            for example, answer in zip(examples, answers, strict=True):
                if wishes.as_json:
                    write_json(as_object(example, answer, codec))
                elif drawn:
                    self._draw(example, answer)
                else:
                    write("\n".join(as_lines(example, answer, codec, wishes.most)))
        if wishes.picture is not None:
            self._save_picture(wishes.picture, examples[0], answers[0])

    def _draw(self, example: Example, answer: Answer) -> None:
        write(f"{self._question(example)}  ({SENTENCES[proof(answer)]})")
        if self.wishes.lattice:
            write(Lattice.of(answer).text(self._in_a_word, separator=self.codec.separator))
        if self.wishes.autocomplete:
            completion = self.searching.completion(example, answer.best.tokens)
            write(completion.text(self._alone))

    def _save_picture(self, path: Path, example: Example, answer: Answer) -> None:
        if self.wishes.autocomplete:
            completion = self.searching.completion(example, answer.best.tokens)
            axes: Any = plot.autocompletion(completion, self._alone)
        else:
            axes = plot.lattice(answer, self._in_a_word, title=self._question(example))
        path.parent.mkdir(parents=True, exist_ok=True)
        axes.figure.savefig(path)

    def _question(self, example: Example) -> str:
        return printable(asked(example, self.codec).translate(BREAKS))

    def _in_a_word(self, token: int) -> str:
        """A symbol among others on one line."""
        return printable(self.codec.target_symbol(token).translate(BREAKS))

    def _alone(self, token: int) -> str:
        """A symbol by itself, where a space would not be seen."""
        return printable(visible(self.codec.target_symbol(token)))
