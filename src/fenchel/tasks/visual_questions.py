"""The task of visual question answering: an image and a question to an answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

from fenchel.checks import check_count
from fenchel.continuous.mixture import Mixture
from fenchel.data.bad_items import BadItems
from fenchel.data.batches import LengthBuckets
from fenchel.data.embeddings import copy_vectors
from fenchel.data.images import thumbnail
from fenchel.data.visual_question_sets import read_visual_question_set
from fenchel.data.visual_questions import (
    EncodedVisualQuestions,
    VisualQuestion,
    VisualQuestionProcessor,
    iterate_visual_questions,
    split_question,
)
from fenchel.errors import FenchelError
from fenchel.models.visual_questions import VisualQuestionConfig, VisualQuestionModel
from fenchel.tasks.alphas import MEANING, alpha_charts, alpha_range, alpha_values, mean_alpha
from fenchel.tasks.wups import THRESHOLD, answer_set, wups
from fenchel.training.device import best_device
from fenchel.training.task import (
    Columns,
    Evaluation,
    OnProgress,
    Output,
    Predictor,
    PublicSet,
    Task,
)
from fenchel.training.validation import validate

if TYPE_CHECKING:
    from fenchel.report import Block, Chart, Log, Section
    from fenchel.training.run import Run

MEANINGS = {
    "accuracy": "% correct answers",
    "wups": f"% WUPS at {THRESHOLD}, which counts words of similar meaning",
    "wups_0": "% WUPS at 0",
    "attention_support": "cells of the image attended, on average",
    "loss": "loss per question",
    "alpha": MEANING,
    "examples": "number of questions",
}
LARGEST_GRID = 64  # images of 2048 × 2048 pixels
SHOWN_ANSWERS = 5
WIDEST_PHOTOGRAPH = 320  # pixels, in a report


class Answered(NamedTuple):
    """The most probable answers, and what was attended to: words, cells of the image, an ellipse.

    The weights of the cells are listed row by row; `density` is None for discrete attention.
    """

    answers: dict[str, float]
    words: list[str]
    word_weights: list[float]
    cells: list[float]
    density: Mixture | None

    @property
    def best(self) -> str:
        return next(iter(self.answers))

    @property
    def caption(self) -> str:
        return ", ".join(f"{answer} {100 * value:.1f} %" for answer, value in self.answers.items())


@dataclass(frozen=True)
class VisualQuestionTask(Task):
    """An image and a question to an answer, with attention over words and over the image."""

    kind = "vqa"
    monitors = ("accuracy", "loss")
    meanings = MEANINGS

    grid: int = 7
    """Rows and columns of the grid of features of an image, which is stretched to a square of 32 pixels
    per cell. The paper's grid is 14."""
    min_count: int = 2
    """Words that occur less often than this are unknown."""
    max_words: int = 30
    """Maximum number of words of a question; the rest is cut off."""
    max_answers: int = 3000
    """Maximum number of answers among which the model chooses, the most frequent ones."""
    embeddings: str | None = None
    """File of pretrained word vectors: GloVe's text format, or .npz with "words" and "vectors"."""
    model: VisualQuestionConfig = field(default_factory=VisualQuestionConfig)

    def __post_init__(self) -> None:
        for name in ("grid", "min_count", "max_words", "max_answers"):
            check_count(getattr(self, name), name)
        if self.grid > LARGEST_GRID:
            raise FenchelError(f"grid must be at most {LARGEST_GRID}, got {self.grid}")

    @property
    def columns(self) -> str:
        return "image<tab>question<tab>answer"

    def iterate(self, path: str, **options: Any) -> Iterator[VisualQuestion | None]:
        return iterate_visual_questions(path, grid=self.grid, **options)

    def input_key(self, examples: Sequence[VisualQuestion]) -> Callable[[VisualQuestion], Hashable]:
        return lambda each: (each.image, *split_question(each.question, self.max_words))

    def usable(
        self, examples: Sequence[VisualQuestion], processor: Any, bad: BadItems
    ) -> Sequence[VisualQuestion]:
        return bad.usable(examples, processor.check)

    def read_public(self, public: PublicSet) -> Mapping[str, Sequence[VisualQuestion]]:
        return read_visual_question_set(public.name, public.folder, **public.options)

    def fit_processor(self, examples: Sequence[VisualQuestion]) -> VisualQuestionProcessor:
        return VisualQuestionProcessor.fit(
            examples,
            grid=self.grid,
            max_words=self.max_words,
            min_count=self.min_count,
            max_answers=self.max_answers,
        )

    def load_processor(self, state: Any, where: str) -> VisualQuestionProcessor:
        return VisualQuestionProcessor.from_state(state, where)

    def sized(self, processor: VisualQuestionProcessor) -> Self:
        sizes = {
            "vocabulary_size": len(processor.vocabulary),
            "answers": len(processor.answers),
            "rows": processor.grid,
        }
        return replace(self, model=replace(self.model, **sizes))

    @property
    def model_sizes(self) -> Mapping[str, int]:
        names = ("vocabulary_size", "answers", "rows", "embedding_size", "hidden_size", "layers")
        names += ("feedforward_size", "attention_bases")
        return {name: getattr(self.model, name) for name in names}

    def build_model(self) -> VisualQuestionModel:
        return VisualQuestionModel(self.model)

    def model_values(self, model: VisualQuestionModel) -> Mapping[str, float]:
        return alpha_values(model)

    def initialize(self, model: VisualQuestionModel, processor: VisualQuestionProcessor) -> None:
        if self.embeddings is not None:
            weight = model.embedding.weight.detach().clone()
            copy_vectors(self.embeddings, processor.vocabulary, weight)
            model.load_embeddings(weight)

    def describe_means(self, means: Mapping[str, float]) -> list[str]:
        return [*super().describe_means(means), *alpha_range(means)]

    def evaluate(
        self,
        run: Run,
        examples: Sequence[VisualQuestion],
        options: Any = None,
        progress: OnProgress | None = None,
    ) -> Evaluation:
        model, data = _ready(run, examples)
        found = _answer_all(run, data, examples, progress)
        means = validate(self, model, data)
        pairs = [(each.best, str(q.answer)) for q, each in zip(examples, found, strict=True)]
        percentages = {
            "accuracy": 100 * fmean(answer_set(a) == answer_set(b) for a, b in pairs),
            "wups": 100 * fmean(wups(a, b) for a, b in pairs),
            "wups_0": 100 * fmean(wups(a, b, threshold=0.0) for a, b in pairs),
        }
        metrics = {**means, **percentages, **mean_alpha(model), "examples": len(examples)}
        return Evaluation(metrics, found)

    def predictor(self, run: Run, options: Any, output: Output = "lines") -> Predictor:
        return VisualQuestionPredictor(run)

    def training_charts(self, log: Log) -> list[Chart]:
        return [*super().training_charts(log), *alpha_charts(log)]

    def report_sections(
        self, run: Run, examples: Sequence[VisualQuestion], evaluation: Evaluation, shown: int
    ) -> list[Section]:
        from fenchel.report import Prediction, Section

        pairs = list(zip(examples, evaluation.predictions, strict=True))
        wrong = [pair for pair in pairs if pair[0].answer != pair[1].best][: shown // 2]
        correct = [pair for pair in pairs if pair[0].answer == pair[1].best][: shown - len(wrong)]
        alpha = self.model.continuous_alpha
        blocks = [
            Prediction(
                source=question.question,
                answer=found.best,
                expected=question.answer,
                blocks=attended_blocks(question, found, alpha),
            )
            for question, found in [*correct, *wrong]
        ]
        return [Section("Examples", "", blocks)]


def attended_blocks(question: VisualQuestion, found: Answered, alpha: float) -> list[Block]:
    """The words of a question and the photograph, with the weights of both and the ellipses."""
    from fenchel.plot.continuous_attention import ellipse_curves
    from fenchel.report import Columns, HighlightedText
    from fenchel.report.photographs import attended_photograph

    jpeg, size = thumbnail(question.image, WIDEST_PHOTOGRAPH)
    words = HighlightedText(found.words, found.word_weights, found.caption)
    cells = attended_photograph(jpeg, size, found.cells, caption="Weights of the cells")
    if found.density is None:
        return [words, cells]
    curves = ellipse_curves(found.density, alpha=alpha)
    caption = "Ellipses where the density is ¼, ½ and ¾ of its largest value"
    caption += "; it is zero outside the bold one" if alpha > 1 else ""
    return [words, Columns([cells, attended_photograph(jpeg, size, (), curves, caption)])]


@final
@dataclass(frozen=True)
class VisualQuestionPredictor(Predictor):
    """Answers with probabilities, and what is attended."""

    run: Run

    @property
    def line_format(self) -> str:
        return "an image file, a tab and a question"

    def read(
        self, path: str, columns: Columns | None = None, bad: BadItems | None = None
    ) -> Iterator[VisualQuestion | None]:
        bad = bad or BadItems()
        options: Any = {"need_targets": False, "columns": columns, "keep_blank": True, "bad": bad}
        for question in self.run.task.iterate(path, **options):
            usable = question and self.run.task.usable([question], self.run.processor, bad)
            yield usable[0] if usable else None

    def parse(self, line: str) -> VisualQuestion:
        image, tab, question = line.strip().partition("\t")
        if not tab or not question.strip():
            raise FenchelError(f"line must be {self.line_format}, got {line.strip()[:60]!r}")
        return VisualQuestion(Path(image), question)

    def predict(
        self, examples: Sequence[VisualQuestion], progress: OnProgress | None = None
    ) -> list[Answered]:
        return answer_questions(self.run, examples, progress)

    def to_json(self, example: VisualQuestion, prediction: Answered) -> dict[str, Any]:
        density = prediction.density
        side = round(len(prediction.cells) ** 0.5)
        rows = [prediction.cells[i : i + side] for i in range(0, len(prediction.cells), side)]
        found = {
            "image": str(example.image),
            "question": example.question,
            "answers": prediction.answers,
            "words": list(zip(prediction.words, prediction.word_weights, strict=True)),
            "cells": rows,
        }
        if density is not None:
            found["density"] = {
                "mean": density.loc[0].tolist(),
                "sigma": density.variance[0].tolist(),
            }
        return found

    def to_lines(self, example: VisualQuestion, prediction: Answered) -> list[str]:
        attended = zip(prediction.words, prediction.word_weights, strict=True)
        words = sorted((pair for pair in attended if pair[1] > 0), key=lambda pair: -pair[1])
        shown = " ".join(f"{word}:{weight:.2f}" for word, weight in words)
        return [f"{prediction.best}\t{prediction.answers[prediction.best]:.4g}\t{shown}"]

    def to_table(
        self, examples: Sequence[VisualQuestion], predictions: Sequence[Answered], width: int
    ) -> Any:
        """The image, the question and the answers."""
        from rich.table import Table

        table = Table("image", "question", "answers", box=None, header_style="bold")
        for question, found in zip(examples, predictions, strict=True):
            table.add_row(question.image.name, question.question, found.caption)
        return table


def answer_questions(
    run: Run, examples: Sequence[VisualQuestion], progress: OnProgress | None = None
) -> list[Answered]:
    """The answers of a run's model, in the order of the questions."""
    _, data = _ready(run, [each._replace(answer=None) for each in examples])
    return _answer_all(run, data, examples, progress)


def _ready(run: Run, examples: Sequence[VisualQuestion]) -> tuple[Any, EncodedVisualQuestions]:
    """The model and the encoded questions on the best device."""
    processor: Any = run.processor
    device = best_device()
    return run.model.to(device).eval(), processor.encode(examples).to(device)


def _answer_all(
    run: Run,
    data: EncodedVisualQuestions,
    examples: Sequence[VisualQuestion],
    progress: OnProgress | None,
) -> list[Answered]:
    processor: Any = run.processor
    model: Any = run.model
    found: dict[int, Answered] = {}
    for index in LengthBuckets(data, 64, shuffle=False).batches():
        probabilities, attended = model.predict(data.batch(index))
        top = probabilities.topk(min(SHOWN_ANSWERS, len(processor.answers)), -1)
        density = attended.density
        for row, place in enumerate(index.tolist()):
            pairs = zip(top.indices[row].tolist(), top.values[row].tolist(), strict=True)
            words = processor.words(examples[place].question)
            found[place] = Answered(
                {processor.answers[number]: value for number, value in pairs if value > 0},
                words,
                attended.words[row, : len(words)].tolist(),
                attended.cells[row].tolist(),
                None if density is None else Mixture(*(p.cpu() for p in density)).at(row, 0),
            )
        if progress is not None:
            progress(len(index))
    return [found[place] for place in range(len(examples))]
