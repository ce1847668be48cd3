"""What the tasks that classify texts share: data, embeddings, metrics and reports."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fenchel.checks import check_count
from fenchel.data.bad_items import BadItems
from fenchel.data.embeddings import copy_vectors
from fenchel.data.texts import LabelledText, TextProcessor, iterate_labelled_texts, text_fields
from fenchel.extras import require
from fenchel.models.text_classifier import TextClassifier
from fenchel.tasks.alphas import MEANING, alpha_charts, alpha_range, alpha_values, mean_alpha
from fenchel.tasks.texts.classification import classify_and_measure
from fenchel.tasks.texts.highlights import explain
from fenchel.tasks.texts.predictor import TextPredictor
from fenchel.tasks.texts.public_sets import read_public_set
from fenchel.training.task import Evaluation, OnProgress, Output, Predictor, PublicSet, Task

if TYPE_CHECKING:
    from fenchel.report import Chart, Log, Section
    from fenchel.training.run import Run

MEANINGS = {
    "accuracy": "% correct labels",
    "f1_macro": "% F1, averaged over labels",
    "attention_support": "words attended, on average",
    "attention_share": "% of the words attended",
    "loss": "loss per example",
    "alpha": MEANING,
    "examples": "number of examples",
}
PERCENTAGES = ("accuracy", "attention_share")


@dataclass(frozen=True, kw_only=True)
class TextTask(Task):
    """Texts to a label, with attention over the words of the first text; a subclass has the model."""

    monitors = ("accuracy", "loss")
    meanings = MEANINGS
    example: ClassVar[type[LabelledText]]
    """The class of the examples."""

    vocabulary: int = 20_000
    """Maximum number of words that the model knows, the most frequent first."""
    min_count: int = 2
    """Words that occur less often than this are unknown."""
    max_words: int = 400
    """Maximum number of words of a text; the rest is cut off."""
    lowercase: bool = True
    """Whether texts are converted to lower case."""
    embeddings: str | None = None
    """File of pretrained word vectors: GloVe's text format, or .npz with "words" and "vectors"."""
    model: Any

    def __post_init__(self) -> None:
        for name in ("vocabulary", "min_count", "max_words"):
            check_count(getattr(self, name), name)

    # Data

    @property
    def columns(self) -> str:
        return "<tab>".join(("label", *text_fields(self.example)))

    def iterate(self, path: str, **options: Any) -> Iterator[LabelledText | None]:
        return iterate_labelled_texts(path, self.example, **options)

    def read_public(self, public: PublicSet) -> Mapping[str, Any]:
        return read_public_set(public.name, public.folder, **public.options)

    def input_key(self, examples: Sequence[LabelledText]) -> Callable[[LabelledText], Hashable]:
        return lambda example: example.texts

    def fit_processor(self, examples: Sequence[LabelledText]) -> TextProcessor:
        sizes = {"max_size": self.vocabulary, "min_count": self.min_count}
        return TextProcessor.fit(
            examples, **sizes, lowercase=self.lowercase, max_words=self.max_words
        )

    def load_processor(self, state: Any, where: str) -> TextProcessor:
        return TextProcessor.from_state(state, where)

    def usable(
        self, examples: Sequence[LabelledText], processor: Any, bad: BadItems
    ) -> Sequence[LabelledText]:
        return bad.usable(examples, processor.check)

    # Model

    def sized(self, processor: TextProcessor) -> Self:
        sizes = {"vocabulary_size": len(processor.vocabulary), "classes": len(processor.labels)}
        return replace(self, model=replace(self.model, **sizes))

    @abstractmethod
    def build_model(self) -> TextClassifier: ...

    @property
    def model_sizes(self) -> Mapping[str, int]:
        names = ("vocabulary_size", "classes", "embedding_size", "hidden_size")
        return {name: getattr(self.model, name) for name in names}

    def model_values(self, model: TextClassifier) -> Mapping[str, float]:
        return alpha_values(model)

    def initialize(self, model: TextClassifier, processor: TextProcessor) -> None:
        if self.embeddings is not None:
            weight = model.embedding.weight.detach().clone()
            copy_vectors(self.embeddings, processor.vocabulary, weight)
            model.load_embeddings(weight)

    # Results

    def describe_means(self, means: Mapping[str, float]) -> list[str]:
        shown = {name: value for name, value in means.items() if name != "attention_share"}
        return [*super().describe_means(shown), *alpha_range(means)]

    def evaluate(
        self,
        run: Run,
        examples: Sequence[LabelledText],
        options: Any = None,
        progress: OnProgress | None = None,
    ) -> Evaluation:
        sklearn_metrics = require("sklearn.metrics", extra="train")
        found, means = classify_and_measure(run, examples, progress)
        labels, best = [each.label for each in examples], [each.best for each in found]
        f1 = sklearn_metrics.f1_score(labels, best, average="macro", zero_division=0)
        percentages = {name: 100 * means[name] for name in PERCENTAGES if name in means}
        metrics = {**means, **percentages, "f1_macro": 100 * float(f1)}
        model: Any = run.model
        return Evaluation({**metrics, **mean_alpha(model), "examples": len(examples)}, found)

    def predictor(self, run: Run, options: Any, output: Output = "lines") -> Predictor:
        return TextPredictor(run, self.example)

    # Report

    def training_charts(self, log: Log) -> list[Chart]:
        return [*super().training_charts(log), *alpha_charts(log)]

    def report_sections(
        self, run: Run, examples: Sequence[LabelledText], evaluation: Evaluation, shown: int
    ) -> list[Section]:
        from fenchel.report import Prediction, Section

        pairs = list(zip(examples, evaluation.predictions, strict=True))
        wrong = [pair for pair in pairs if pair[0].label != pair[1].best][: shown // 2]
        correct = [pair for pair in pairs if pair[0].label == pair[1].best][: shown - len(wrong)]
        blocks = [
            Prediction(
                source=example.texts[-1][:120],
                answer=found.best,
                expected=example.label,
                blocks=explain(run, found),
            )
            for example, found in [*wrong, *correct]
        ]
        return [Section("Examples", "", blocks)]
