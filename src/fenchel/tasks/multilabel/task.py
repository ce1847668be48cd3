"""The task of multi-label classification: texts or numbers to label proportions and label sets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fenchel.checks import BELOW_ZERO, check_count, check_number
from fenchel.data.bad_items import BadItems
from fenchel.data.multilabel import iterate_multilabel
from fenchel.data.multilabel_example import MultilabelExample
from fenchel.errors import FenchelError
from fenchel.extras import require
from fenchel.models.labels import LinearLabels, LinearLabelsConfig
from fenchel.tasks.multilabel.fitting import f1_of_means, fit_labels
from fenchel.tasks.multilabel.processor import EncodedLabels, LabelProcessor
from fenchel.training.task import (
    Evaluation,
    FittedModel,
    OnProgress,
    Output,
    PublicSet,
    Task,
)
from fenchel.training.validation import validate

if TYPE_CHECKING:
    from fenchel.report import Chart, Log, Section
    from fenchel.tasks.multilabel.predictor import LabelPredictor, LabelSet
    from fenchel.training.config import TrainingConfig
    from fenchel.training.run import Run

MEANINGS = {
    "f1_micro": "% F1 over all pairs of an example and a label",
    "f1_macro": "% F1, averaged over labels",
    "f1_of_means": "% F1 of precision and recall that are averaged over labels",
    "accuracy": "% examples with exactly the right labels",
    "labels": "labels predicted per example, on average",
    "support": "labels with a proportion above zero, on average",
    "loss": "loss per example",
    "unknown_labels": "labels that did not occur in training and so cannot be predicted",
    "examples": "number of examples",
}


@dataclass(frozen=True)
class MultilabelTask(Task):
    """Texts or numbers to sets of labels, with a linear model."""

    kind = "multilabel"
    monitors = ("f1_micro", "f1_macro", "f1_of_means")
    meanings = MEANINGS
    needs_dev = False

    labels: tuple[str, ...] = ()
    """Names of the columns with labels in an ARFF or CSV file, or an XML file with these. By default, an
    ARFF file has an XML file beside it, and a CSV file has a column "labels"."""
    ignore: tuple[str, ...] = ()
    """Names of columns that are left out."""
    allow_unlabelled: bool = False
    """Whether examples may have no label. The loss "logistic" learns from them, others leave them out."""
    standardize: bool = True
    """Whether columns of numbers are scaled to mean 0 and variance 1. Sparse rows stay as they are."""
    vocabulary: int = 20_000
    """Maximum number of words of texts, the most frequent first."""
    min_count: int = 2
    """Words that are in fewer texts than this are unknown."""
    lowercase: bool = True
    """Whether texts are converted to lower case."""
    penalties: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    """Strengths λ of the regularization λ/2 ‖W‖² beside the mean loss; the best of them is taken."""
    rules: tuple[float, ...] = ()
    """Thresholds of the losses "softmax" and "logistic", or inverse temperatures of the others; the best
    of them is taken. By default, they are those of the paper."""
    alphas: tuple[float, ...] = (1.5,)
    """Values of α for the loss "entmax"; the best of them is taken."""
    folds: int = 5
    """Number of folds of the cross-validation that chooses these if there are no --dev examples."""
    tolerance: float = 1e-4
    """L-BFGS stops when no component of the gradient of the mean loss is larger."""
    model: LinearLabelsConfig = field(default_factory=LinearLabelsConfig)

    def __post_init__(self) -> None:
        for name in ("vocabulary", "min_count"):
            check_count(getattr(self, name), name)
        check_count(self.folds, "folds", least=2)
        check_number(self.tolerance, name="tolerance", above=0)
        for name, above in (("penalties", 0), ("alphas", 0), ("rules", BELOW_ZERO)):
            for value in getattr(self, name):
                check_number(value, name=name, above=above)
        for name in ("penalties", "alphas"):
            if not getattr(self, name):
                raise FenchelError(f"{name} must have at least one number, got none")
        files = [
            str(Path(name).resolve()) if name.endswith(".xml") else name for name in self.labels
        ]
        object.__setattr__(self, "labels", tuple(files))

    # Data

    @property
    def columns(self) -> str:
        return "labels<tab>text, ARFF, svmlight, CSV"

    def iterate(self, path: str, **options: Any) -> Iterator[MultilabelExample | None]:
        return iterate_multilabel(
            path,
            allow_unlabelled=self.allow_unlabelled,
            label_source=self.labels,
            ignored=self.ignore,
            **options,
        )

    def input_key(
        self, examples: Sequence[MultilabelExample]
    ) -> Callable[[MultilabelExample], Hashable]:
        def input_key(example: MultilabelExample) -> Hashable:
            if isinstance(example.features, str):
                return example.features
            return example.features.columns, example.features.values.tobytes()

        return input_key

    def check_training_examples(self, examples: Sequence[MultilabelExample], bad: BadItems) -> None:
        """Every label that a file declares must have an example."""
        used = {label for example in examples for label in example.labels or ()}
        declared = {
            label: place for each in examples[:1] for label, place in (each.declared or {}).items()
        }
        for label, place in declared.items():
            if label not in used:
                bad.add(
                    FenchelError(
                        f"{place}: label must have at least one training example, got none for {label!r}"
                    )
                )

    def read_public(self, public: PublicSet) -> Mapping[str, Sequence[MultilabelExample]]:
        from fenchel.tasks.multilabel.public_sets import read_public_set

        return read_public_set(public.name, public.folder, **public.options)

    def fit_processor(self, examples: Sequence[MultilabelExample]) -> LabelProcessor:
        return LabelProcessor.fit(
            examples,
            standardize=self.standardize,
            max_size=self.vocabulary,
            min_count=self.min_count,
            lowercase=self.lowercase,
        )

    def load_processor(self, state: Any, where: str) -> LabelProcessor:
        return LabelProcessor.from_state(state, where)

    # Model

    def sized(self, processor: LabelProcessor) -> Self:
        features, labels = len(processor.features.names), len(processor.labels)
        sizes = {"feature_count": features, "label_count": labels}
        return replace(self, model=replace(self.model, **sizes))

    @property
    def model_sizes(self) -> Mapping[str, int]:
        return {name: getattr(self.model, name) for name in ("feature_count", "label_count")}

    def build_model(self) -> LinearLabels:
        return LinearLabels(self.model)

    def fit_model(
        self, train: EncodedLabels, dev: EncodedLabels | None, training: TrainingConfig
    ) -> FittedModel:
        return fit_labels(self, train, dev, training)

    # Results

    def evaluate(
        self,
        run: Run,
        examples: Sequence[MultilabelExample],
        options: Any = None,
        progress: OnProgress | None = None,
    ) -> Evaluation:
        from fenchel.tasks.multilabel.predictor import predict_labels

        processor: Any = run.processor
        model: Any = run.model
        data = processor.encode(examples)
        means = validate(self, model, data)
        predictions = predict_labels(run, data)
        if progress is not None:
            progress(len(examples))
        metrics = set_metrics(processor.labels, examples, predictions)
        return Evaluation({**metrics, "loss": means["loss"]}, predictions)

    def predictor(self, run: Run, options: Any, output: Output = "lines") -> LabelPredictor:
        from fenchel.tasks.multilabel.predictor import LabelPredictor

        return LabelPredictor(run)

    # Report

    def summarize(self, metrics: Mapping[str, Any]) -> str:
        return (
            f"reaches {metrics['f1_micro']:.1f} % micro and {metrics['f1_macro']:.1f} % macro F1, "
            f"predicting {metrics['labels']:.1f} labels per example"
        )

    def training_charts(self, log: Log) -> list[Chart]:
        return []  # there is one validation

    def report_sections(
        self, run: Run, examples: Sequence[MultilabelExample], evaluation: Evaluation, shown: int
    ) -> list[Section]:
        from fenchel.tasks.multilabel.report import report_sections

        return report_sections(run, examples, evaluation.predictions, shown)


def set_metrics(
    known: Sequence[str], examples: Sequence[MultilabelExample], predictions: Sequence[LabelSet]
) -> dict[str, Any]:
    """The metrics of label sets; labels that the model does not know are never predicted."""
    metrics = require("sklearn.metrics", extra="train")
    true = [frozenset(example.labels or ()) for example in examples]
    unknown = sorted(frozenset().union(*true) - {*known})
    names = [*known, *unknown]
    places = {name: place for place, name in enumerate(names)}
    right, found = (np.zeros((len(examples), len(names)), dtype=bool) for _ in range(2))
    for row, (labels, prediction) in enumerate(zip(true, predictions, strict=True)):
        right[row, [places[label] for label in labels]] = True
        found[row, [places[label] for label in prediction.labels]] = True

    def f1(average: str) -> float:
        return 100 * float(metrics.f1_score(right, found, average=average, zero_division=0))

    return {
        "f1_micro": f1("micro"),
        "f1_macro": f1("macro"),
        "f1_of_means": 100 * f1_of_means(right, found),
        "accuracy": 100 * float((right == found).all(1).mean()),
        "labels": float(found.sum(1).mean()),
        "support": float(np.mean([len(each.proportions) for each in predictions])),
        **({"unknown_labels": len(unknown)} if unknown else {}),
        "examples": len(examples),
    }
