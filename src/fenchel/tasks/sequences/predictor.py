"""Predictions of a sequence model: which search, and how its answers are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

import torch

from fenchel.data.bad_items import BadItems
from fenchel.data.lines import Lines, is_standard_input, read_lines
from fenchel.errors import FenchelError, unknown
from fenchel.extras import require
from fenchel.printable import printable, without_breaks
from fenchel.report.svg import visible
from fenchel.search import Answer, Completion, Lattice, autocomplete
from fenchel.tasks.search_options import PROOFS, proof
from fenchel.tasks.sequences.answers import as_json, as_lines, as_table, input_text
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.decoding import decode
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.inflection import iterate_inflection, language_of
from fenchel.tasks.sequences.parallel import iterate_parallel
from fenchel.tasks.sequences.predict_options import PredictOptions
from fenchel.tasks.unknown_symbols import unknown_symbol_warnings
from fenchel.training.device import best_device
from fenchel.training.run import Run
from fenchel.training.task import Columns, OnProgress, Output, Predictor


@final
class SequencePredictor(Predictor):
    """Searches for answers with a run's model: by beam search, exactly, or by sampling."""

    def __init__(self, run: Run, options: PredictOptions, output: Output = "lines") -> None:
        self.run, self.options = run, options
        self.codec: Codec = run.processor  # type: ignore[assignment]
        self.settings = run.task.search
        self.most = options.shown(terminal=output == "terminal")
        self.device = best_device()
        self._search = options.search(self.device)
        self._picture = options.picture
        self._check_language()
        if output == "json" and self._draws:
            raise FenchelError("--json cannot be combined with --lattice or --autocomplete")
        if options.picture is not None:
            require("matplotlib", extra="plot")

    # Reading

    @property
    def line_format(self) -> str:
        if self.run.task.data.format != "inflection":
            return "a text"
        languages = self.codec.languages
        if len(languages) > 1:
            names = ", ".join(languages)
            return f"lemma tags language, such as: draw V;PST {languages[0]} ({names})"
        return "lemma tags, such as: draw V;PST"

    def read(
        self, path: str, columns: Columns | None = None, bad: BadItems | None = None
    ) -> Iterator[Example | None]:
        lines = read_lines(path, bad)
        if is_standard_input(path) and self._looks_typed(lines.first[1]):
            return (self._parsed(lines, number, text) for number, text in lines)
        if self.run.task.data.format != "inflection":
            return iterate_parallel(lines, columns=columns, keep_blank=True)
        language = self.options.language
        examples = iterate_inflection(lines, language, columns=columns, keep_blank=True)
        return (self._with_known_language(lines, number, e) for number, e in enumerate(examples, 1))

    def _looks_typed(self, line: str) -> bool:
        """Whether `parse` reads this first line of a pipe: it has no columns, or `lemma tags language`.

        As columns, the latter would be a lemma, a form and tags.
        """
        cells = line.split("\t")
        if len(cells) == 3 and self.run.task.data.format == "inflection":
            return cells[-1].strip() in self.codec.languages
        return len(cells) == 1 and not line.lstrip().startswith("{")

    def _parsed(self, lines: Lines, number: int, text: str) -> Example | None:
        """The example of a line; None for a blank line, and for a bad one that is skipped."""
        try:
            return self.parse(text) if text else None
        except FenchelError as error:
            lines.bad.add(lines.error(number, str(error)))
            return None

    def _with_known_language(
        self, lines: Lines, number: int, example: Example | None
    ) -> Example | None:
        """The example, if its language is one of those of the run."""
        languages = self.codec.languages
        if example is not None and len(languages) > 1 and example.group not in languages:
            by_name = " (the name of the file)" if example.group == language_of(lines.name) else ""
            got = f"{example.group!r}{by_name}" if example.group else "none"
            error = FenchelError(
                f"{lines.name}, example {number}: the language must be one of "
                f"{', '.join(languages)}, in a column or as --language, got {got}"
            )
            lines.bad.add(error)
            return None
        return example

    def parse(self, line: str) -> Example:
        """The example of a typed line: tags and language are its last words.

        A lemma may contain spaces. The language is not typed if it is given as an option.
        """
        text = line.strip()
        if self.run.task.data.format != "inflection":
            return Example(text)
        language, languages = self.options.language, self.codec.languages
        words = text.replace("\t", " ").split()
        if language is None and len(words) > 2 and words[-1] in languages:
            language = words.pop()
        if len(words) < 2 or (language is None and len(languages) > 1):
            raise FenchelError(f"a line must be {self.line_format}, got {text!r}")
        *lemma, tags = words
        group = language or ""
        known = tuple(tag for tag in tags.split(";") if tag)
        return Example(" ".join(lemma), None, (group, *known) if group else known, group)

    def warnings(self, examples: Sequence[Example]) -> list[str]:
        """Symbols that the model has not seen in training, with their example if there are several."""
        unknown = [self.codec.unknown(example) for example in examples]
        return unknown_symbol_warnings([example.source for example in examples], unknown)

    def _check_language(self) -> None:
        language, known = self.options.language, self.codec.languages
        if language is not None and not known:
            raise FenchelError(f"--language cannot be used: {self.run.path} has no languages")
        if language is not None and language not in known:
            raise unknown("language of this run", language, known)

    # Searching

    def predict(
        self, examples: Sequence[Example], progress: OnProgress | None = None
    ) -> list[Answer]:
        return decode(
            self.run.model,  # type: ignore[arg-type]
            self.codec,
            examples,
            width=self.options.width(self.settings),
            batch_size=self.settings.sentences,
            max_length=self.settings.max_length,
            device=self.device,
            progress=progress,
            search=self._search,
        )

    def _completion(self, example: Example, answer: Answer) -> Completion:
        """The candidates after every symbol of the best answer."""
        source = torch.tensor([self.codec.encode_source(example)], device=self.device)
        model: Any = self.run.model.to(self.device)
        stepper = model.stepper(source, torch.tensor([source.shape[1]]))
        return autocomplete(stepper, [answer.best.tokens])[0]

    # Showing

    @property
    def _draws(self) -> bool:
        return self.options.lattice or self.options.autocomplete

    def to_json(self, example: Example, prediction: Answer) -> dict[str, Any]:
        return as_json(example, prediction, self.codec)

    def to_lines(self, example: Example, prediction: Answer) -> list[str]:
        if not self._draws:
            return as_lines(example, prediction, self.codec, self.most)
        lines = [f"{self._title(example)}  ({PROOFS[proof(prediction)]})"]
        if self.options.lattice:
            separator = self.codec.separator
            lines.append(Lattice.of(prediction).text(self._within_text, separator=separator))
        if self.options.autocomplete:
            lines.append(self._completion(example, prediction).text(self._alone))
        return lines

    def to_table(self, examples: Sequence[Example], predictions: Sequence[Answer], width: int):
        if self._draws:
            return None
        return as_table(examples, predictions, self.codec, self.most, width)

    def finish(self, examples: Sequence[Example], predictions: Sequence[Answer]) -> None:
        """Save the picture of the first example, also where several parts of a pipe are predicted."""
        if self._picture is None or not examples:
            return
        path, self._picture = self._picture, None
        from fenchel import plot

        example, answer = examples[0], predictions[0]
        if self.options.autocomplete:
            axes: Any = plot.autocompletion(self._completion(example, answer), self._alone)
        else:
            axes = plot.lattice(answer, self._within_text, title=self._title(example))
        path.parent.mkdir(parents=True, exist_ok=True)
        axes.figure.savefig(path)

    def _title(self, example: Example) -> str:
        return printable(without_breaks(input_text(example, self.codec)))

    def _within_text(self, token: int) -> str:
        """A symbol among others on one line."""
        return printable(without_breaks(self.codec.target_symbol(token)))

    def _alone(self, token: int) -> str:
        """A symbol by itself, where a space would not be seen."""
        return printable(visible(self.codec.target_symbol(token)))
