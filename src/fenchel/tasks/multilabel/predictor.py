"""Predictions of label sets and label proportions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from fenchel.data.bad_items import BadItems
from fenchel.data.csv_and_svmlight import parse_entries
from fenchel.data.lines import is_standard_input, read_lines
from fenchel.data.multilabel import iterate_multilabel
from fenchel.data.multilabel_example import MultilabelExample, Numbers, parse_number
from fenchel.errors import FenchelError
from fenchel.tasks.multilabel.processor import EncodedLabels, LabelProcessor, NumberFeatures
from fenchel.training.run import Run
from fenchel.training.task import Columns, OnProgress, Predictor

LEAST_SHOWN = 0.005  # proportions below this are not printed, but are part of the JSON


class LabelSet(NamedTuple):
    """The labels predicted, and the proportions above zero by label, the largest first."""

    labels: tuple[str, ...]
    proportions: dict[str, float]

    @property
    def caption(self) -> str:
        """The proportions in short."""
        shown = {label: p for label, p in self.proportions.items() if p >= LEAST_SHOWN}
        return " ".join(f"{label}:{p:.2f}" for label, p in shown.items())


@final
@dataclass(frozen=True)
class LabelPredictor(Predictor):
    """Predicts with a linear model of texts or of numbers."""

    run: Run

    @property
    def _processor(self) -> LabelProcessor:
        processor: Any = self.run.processor
        return processor

    @property
    def line_format(self) -> str:
        if self._processor.takes_texts:
            return "a text"
        return "numbers between commas, or column:number between spaces"

    def read(
        self, path: str, columns: Columns | None = None, bad: BadItems | None = None
    ) -> Iterator[MultilabelExample | None]:
        if is_standard_input(path) and not self._processor.takes_texts:
            return self._parse_lines(path, bad)
        task = self.run.task
        options = {"columns": columns, "keep_blank": True, "bad": bad}
        source = {"label_source": task.labels or self._processor.labels, "ignored": task.ignore}
        return iterate_multilabel(path, need_targets=False, **source, **options)

    def _parse_lines(self, path: str, bad: BadItems | None) -> Iterator[MultilabelExample | None]:
        lines = read_lines(path, bad)
        for number, text in lines:
            example = None
            try:
                example = self.parse(text) if text else None
            except FenchelError as error:
                lines.bad.add(lines.error(number, str(error)))
            yield example

    def parse(self, line: str) -> MultilabelExample:
        features = self._processor.features
        text = line.strip()
        if not isinstance(features, NumberFeatures):
            return MultilabelExample(text)
        try:
            if ":" in text:
                return MultilabelExample(parse_entries(text.split()))
            values = [parse_number(cell) for cell in text.split(",")]
        except ValueError as error:
            raise FenchelError(
                f"a line must be {self.line_format}, got {text[:40]!r}: value {error}"
            ) from None
        if len(values) != len(features.columns):
            count = len(features.columns)
            raise FenchelError(f"a line must have {count} numbers, got {len(values)}")
        return MultilabelExample(Numbers(tuple(features.columns), np.array(values)))

    def predict(
        self, examples: Sequence[MultilabelExample], progress: OnProgress | None = None
    ) -> list[LabelSet]:
        found = predict_labels(self.run, self._processor.encode(examples))
        if progress is not None:
            progress(len(found))
        return found

    def to_json(self, example: MultilabelExample, prediction: LabelSet) -> dict[str, Any]:
        text = {"text": example.features} if isinstance(example.features, str) else {}
        return {**text, "labels": prediction.labels, "proportions": prediction.proportions}

    def to_lines(self, example: MultilabelExample, prediction: LabelSet) -> list[str]:
        return [f"{', '.join(prediction.labels)}\t{prediction.caption}"]

    def warnings(self, examples: Sequence[MultilabelExample]) -> list[str]:
        """Texts without a known word, for which only the intercept counts."""
        data = self._processor.encode(examples) if examples else None
        if data is None or not self._processor.takes_texts:
            return []
        count = int((np.diff(data.features.indptr) == 0).sum())
        texts = "text has" if count == 1 else "texts have"
        return [f"{count} {texts} no word that the model knows"] if count else []


def predict_labels(run: Run, data: EncodedLabels) -> list[LabelSet]:
    """The predictions of a run's model."""
    processor: Any = run.processor
    model: Any = run.model
    names = np.array(processor.labels, dtype=object)
    scores = data.scores(model)
    proportions, sets = model.proportions(scores).numpy(), model.sets(scores).numpy()
    found = []
    for row, marks in zip(proportions, sets, strict=True):
        order = np.argsort(-row, kind="stable")[: np.count_nonzero(row)]
        ranked = dict(zip(names[order], row[order].tolist(), strict=True))
        # From a smaller temperature, a set may have labels whose proportion is zero: they come last.
        labels = [name for name in ranked if marks[processor.labels.index(name)]]
        labels += [name for name in names[marks] if name not in ranked]
        found.append(LabelSet(tuple(labels), ranked))
    return found
