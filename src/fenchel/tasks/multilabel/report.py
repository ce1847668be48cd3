"""What a report says about a model of labels: each label with its features, and examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fenchel.data.multilabel_example import MultilabelExample
from fenchel.report import Prediction, Section, Table
from fenchel.tasks.multilabel.predictor import LabelSet
from fenchel.training.run import Run

MOST_LABELS = 40
FEATURES = 6  # of each label
LONGEST_TEXT = 100


def report_sections(
    run: Run, examples: Sequence[MultilabelExample], predictions: Sequence[LabelSet], shown: int
) -> list[Section]:
    """The labels, and `shown` examples, wrong ones first."""
    pairs = list(zip(range(1, len(examples) + 1), examples, predictions, strict=True))
    wrong = [each for each in pairs if {*(each[1].labels or ())} != {*each[2].labels}]
    right = [each for each in pairs if {*(each[1].labels or ())} == {*each[2].labels}]
    chosen = wrong[: shown - min(shown // 2, len(right))]
    chosen += right[: shown - len(chosen)]
    blocks = [_prediction(*each) for each in chosen]
    text = "The proportions are those of labels above zero." if blocks else ""
    return [_labels(run, examples, predictions), Section("Examples", text, blocks)]


def _labels(
    run: Run, examples: Sequence[MultilabelExample], predictions: Sequence[LabelSet]
) -> Section:
    """How well each label is predicted, and the features with the largest weights for it."""
    processor: Any = run.processor
    model: Any = run.model
    weights, names = model.output.weight.detach().numpy(), processor.features.names
    rows = []
    for place, label in enumerate(processor.labels):
        true = np.array([label in (each.labels or ()) for each in examples])
        found = np.array([label in each.labels for each in predictions])
        hits, total = int((true & found).sum()), int(true.sum() + found.sum())
        best = [at for at in np.argsort(-weights[place])[:FEATURES] if weights[place, at] > 0]
        features = ", ".join(names[at] for at in best)
        f1 = 200 * hits / total if total else None
        rows.append((label, int(true.sum()), int(found.sum()), f1, features))
    rows.sort(key=lambda row: -row[1])
    columns = ["label", "examples", "predicted", "F1 %", "features with the largest weights"]
    caption = f"The {MOST_LABELS} most frequent labels" if len(rows) > MOST_LABELS else "All labels"
    return Section("Labels", "", [Table(caption, columns, rows[:MOST_LABELS])])


def _prediction(number: int, example: MultilabelExample, prediction: LabelSet) -> Prediction:
    features = example.features
    source = features[:LONGEST_TEXT] if isinstance(features, str) else f"example {number}"
    rows = [(label, 100 * value) for label, value in prediction.proportions.items()][:FEATURES]
    return Prediction(
        source=source,
        answer=", ".join(sorted(prediction.labels)) or "no label",
        expected=", ".join(sorted(example.labels or ())) or "no label",
        blocks=[Table("Proportions", ["label", "%"], rows)],
    )
