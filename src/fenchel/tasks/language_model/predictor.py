"""Continuations of texts with a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

from fenchel.data.bad_items import BadItems
from fenchel.data.batches import LengthBuckets
from fenchel.data.ragged import Ragged
from fenchel.data.vocabulary import BOS, EOS
from fenchel.errors import FenchelError
from fenchel.printable import without_breaks
from fenchel.search import Answer
from fenchel.stored_json import shortened
from fenchel.tasks.language_model.texts import LanguageModelData, LanguageModelProcessor
from fenchel.tasks.search_options import GenerationOptions, proof
from fenchel.tasks.unknown_symbols import unknown_symbol_warnings
from fenchel.training.device import best_device
from fenchel.training.run import Run
from fenchel.training.task import Columns, OnProgress, Output, Predictor

BATCH_SIZE = 32


@final
class ContinuationPredictor(Predictor):
    """Continues texts: by beam search, exactly, or by sampling."""

    def __init__(self, run: Run, options: GenerationOptions, output: Output = "lines") -> None:
        self.run, self.options = run, options
        self.processor: LanguageModelProcessor = run.processor  # type: ignore[assignment]
        self.settings = run.task.search
        self.most = options.shown(terminal=output == "terminal")
        self.device = best_device()
        self._search = options.search(self.device)

    @property
    def line_format(self) -> str:
        return "the beginning of a text"

    def read(
        self, path: str, columns: Columns | None = None, bad: BadItems | None = None
    ) -> Iterator[str | None]:
        return self.run.task.iterate(path, columns=columns, keep_blank=True, bad=bad)

    def parse(self, line: str) -> str:
        return line.strip()

    def warnings(self, examples: Sequence[str]) -> list[str]:
        """Symbols that the model has not seen in training."""
        return unknown_symbol_warnings(examples, [self.processor.unknown(e) for e in examples])

    def predict(self, examples: Sequence[str], progress: OnProgress | None = None) -> list[Answer]:
        model: Any = self.run.model.to(self.device).eval()
        rows = [self.processor.ids(text) for text in examples]
        self._check_lengths(examples, rows)
        data = LanguageModelData(Ragged(rows)).to(self.device)
        answers: dict[int, Answer] = {}
        size = self.settings.sentences or BATCH_SIZE
        for index in LengthBuckets(data, size, shuffle=False).batches():
            found = self._search(
                model.stepper(*data.batch(index)),
                width=self.options.width(self.settings),
                max_length=self.settings.max_length,
                bos=BOS,
                eos=EOS,
            )
            answers |= zip(index.tolist(), found, strict=True)
            if progress is not None:
                progress(len(found))
        return [answers[place] for place in range(len(examples))]

    def _check_lengths(self, examples: Sequence[str], rows: Sequence[Sequence[int]]) -> None:
        positions = self.run.task.model.max_positions
        longest = positions - self.settings.max_length
        for place, (text, row) in enumerate(zip(examples, rows, strict=True), start=1):
            if len(row) > longest:
                raise FenchelError(
                    f"a text to continue must have at most {longest} symbols (max_positions - "
                    f"search.max_length), got {len(row)} in example {place}: {shortened(text)}"
                )

    def to_json(self, example: str, prediction: Answer) -> dict[str, Any]:
        answers = [
            {
                "text": self.processor.continued(example, hypothesis.tokens),
                "probability": hypothesis.probability,
                "finished": hypothesis.finished,
            }
            for hypothesis in prediction.hypotheses
        ]
        return {"text": example, "answers": answers}

    def to_lines(self, example: str, prediction: Answer) -> list[str]:
        return [
            "\t".join(
                (
                    without_breaks(example),
                    without_breaks(self.processor.continued(example, hypothesis.tokens))
                    + ("" if hypothesis.finished else " …"),
                    f"{hypothesis.probability:.4g}",
                    "drawn" if self.options.samples else proof(prediction, rank),
                )
            )
            for rank, hypothesis in enumerate(prediction.hypotheses[: self.most])
        ]
