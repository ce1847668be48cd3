"""Questions about images: files to examples, examples to tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from fenchel.data.bad_items import BadItems
from fenchel.data.grids import image_grids, is_kept
from fenchel.data.images import check_image
from fenchel.data.lines import is_standard_input
from fenchel.data.ragged import Ragged
from fenchel.data.records import Record, read_examples
from fenchel.data.texts import WORD
from fenchel.data.vocabulary import UNK, Vocabulary
from fenchel.errors import FenchelError
from fenchel.settings import from_json

FIELDS = ("image", "question", "answer")
UNKNOWN_ANSWER = -100  # an answer that the model does not know, which no prediction equals


class VisualQuestion(NamedTuple):
    """A question about an image, and its answer, which is None if it is to be predicted.

    `place` is the file and the line where the question comes from, for errors.
    """

    image: Path
    question: str
    answer: str | None = None
    place: str = ""


class VisualQuestionBatch(NamedTuple):
    """Questions padded with 0: tokens (B, S), lengths (B,), grids (B, L, FEATURES), answers (B,)."""

    tokens: Tensor
    lengths: Tensor
    grids: Tensor
    answers: Tensor


def iterate_visual_questions(
    path: str | PurePath,
    *,
    grid: int,
    need_targets: bool = True,
    columns: Mapping[str, str] | None = None,
    keep_blank: bool = False,
    bad: BadItems | None = None,
) -> Iterator[VisualQuestion | None]:
    """Read the questions of a file of the fields `image`, `question` and `answer`.

    Every image is read once, so that the line of a missing or damaged one is bad. Images whose features
    are on disk already are not decoded again.

    Args:
        path: The file; "-" is standard input. Names of images are relative to its folder.
        grid: Rows and columns of the grid of features.
        need_targets: Whether every line has an answer; without, answers are ignored and may be missing.
        columns: The names of columns or keys that differ from those of the fields.
        keep_blank: Whether a blank line is None instead of an error.
        bad: Takes the errors of bad lines; by default, the first is raised.
    """
    folder = Path() if is_standard_input(path) else Path(path).parent

    @cache
    def error_of(image: Path) -> str:
        try:
            if not is_kept(image, grid):
                check_image(image)
        except FenchelError as error:
            return str(error)
        return ""

    def make(record: Record) -> VisualQuestion:
        image = folder / record.text("image")
        question = record.text("question")
        if message := error_of(image):
            raise record.error(message)
        answer = _answer(record) if need_targets else None
        return VisualQuestion(image, question, answer, f"{record.lines.name}:{record.number}")

    required = FIELDS if need_targets else FIELDS[:2]
    options = {"columns": columns, "keep_blank": keep_blank, "bad": bad}
    return read_examples(path, FIELDS, make, required, **options)


def _answer(record: Record) -> str:
    """An answer as a text; a list, as JSON has it, is a set of answers."""
    value = record.fields.get("answer")
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return join_answers(value)
    return record.label("answer")


def join_answers(answers: Sequence[str]) -> str:
    """Several answers to a question as one text that does not depend on their order.

    >>> join_answers(["table", "chair", "table"])
    'chair, table'
    """
    return ", ".join(sorted({answer.strip() for answer in answers}))


@dataclass(frozen=True)
class VisualQuestionProcessor:
    """Splits questions into words, numbers words and answers, and makes images into grids of features.

    Attributes:
        vocabulary: The words that the model knows.
        answers: The answers among which the model chooses, the most frequent first.
        grid: Rows and columns of the grids.
        max_words: Maximum number of words of a question; the rest is cut off.
    """

    vocabulary: Vocabulary
    answers: list[str]
    grid: int
    max_words: int

    @classmethod
    def fit(
        cls,
        questions: Sequence[VisualQuestion],
        *,
        grid: int,
        max_words: int,
        min_count: int = 1,
        max_answers: int | None = None,
    ) -> VisualQuestionProcessor:
        """The processor of a training set.

        Args:
            questions: Questions with answers.
            grid: Rows and columns of the grids.
            max_words: Maximum number of words of a question.
            min_count: Words that occur less often than this are unknown.
            max_answers: Maximum number of answers, the most frequent first.
        """
        counts = Counter(str(each.answer) for each in questions)
        answers = sorted(counts, key=lambda answer: (-counts[answer], answer))[:max_answers]
        if len(answers) < 2:
            raise FenchelError(
                f"questions must have at least two answers, got {', '.join(answers)}"
            )
        words = chain.from_iterable(split_question(each.question, max_words) for each in questions)
        return cls(Vocabulary.build(words, min_count), answers, grid, max_words)

    def words(self, question: str) -> list[str]:
        """Words and punctuation marks of a question."""
        return split_question(question, self.max_words)

    def check(self, question: VisualQuestion) -> None:
        """Raise unless the question has a word that the model knows."""
        ids = self.vocabulary.ids(self.words(question.question))
        if all(each == UNK for each in ids):
            place = f"{question.place}: " if question.place else ""
            rule = "question must have a word that occurs in the training questions"
            raise FenchelError(f"{place}{rule}, got {question.question[:60]!r}")

    def encode(self, questions: Sequence[VisualQuestion]) -> EncodedVisualQuestions:
        """Questions as tensors; answers that the model does not know are `UNKNOWN_ANSWER`."""
        for question in questions:
            self.check(question)
        numbers = {answer: number for number, answer in enumerate(self.answers)}
        images = {image: place for place, image in enumerate({q.image: None for q in questions})}
        tokens = [self.vocabulary.ids(self.words(each.question)) for each in questions]
        return EncodedVisualQuestions(
            Ragged(tokens),
            torch.tensor([images[each.image] for each in questions]),
            image_grids(list(images), self.grid),
            torch.tensor([numbers.get(each.answer or "", UNKNOWN_ANSWER) for each in questions]),
        )

    def state(self) -> dict[str, Any]:
        """The processor as JSON."""
        vocabulary = self.vocabulary.state()
        return asdict(_StoredProcessor(vocabulary, self.answers, self.grid, self.max_words))

    @classmethod
    def from_state(cls, state: Any, where: str) -> VisualQuestionProcessor:
        """The processor with this `state`; `where` names its file in errors."""
        stored = from_json(_StoredProcessor, state, where)
        vocabulary = Vocabulary.from_state(stored.vocabulary, f"{where}: vocabulary")
        return cls(vocabulary, stored.answers, stored.grid, stored.max_words)


def split_question(question: str, max_words: int) -> list[str]:
    """Words and punctuation marks in lower case, at most `max_words`.

    >>> split_question("What is on the left?", 20)
    ['what', 'is', 'on', 'the', 'left', '?']
    """
    return WORD.findall(question.lower())[:max_words] or [question.strip()]


@final
class EncodedVisualQuestions:
    """Questions as tensors, from which batches are gathered; each grid is stored once per image."""

    def __init__(self, tokens: Ragged, images: Tensor, grids: Tensor, answers: Tensor) -> None:
        self.tokens, self.images, self.grids, self.answers = tokens, images, grids, answers

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def lengths(self) -> Tensor:
        """The numbers of words, (N, 1)."""
        return self.tokens.lengths.unsqueeze(1)

    def batch(self, index: Tensor) -> VisualQuestionBatch:
        """The questions at `index` (B,)."""
        device = self.answers.device
        there = index.to(device)
        return VisualQuestionBatch(
            self.tokens.padded(index),
            self.tokens.lengths[index].to(device),
            self.grids[self.images[there]].float(),
            self.answers[there],
        )

    def to(self, device: torch.device | str) -> EncodedVisualQuestions:
        """The same questions on `device`."""
        moved = (each.to(device) for each in (self.images, self.grids, self.answers))
        return EncodedVisualQuestions(self.tokens.to(device), *moved)

    def tensors(self) -> tuple[Tensor, ...]:
        """Words, lengths, features and answers."""
        return self.tokens.values, self.tokens.lengths, self.images, self.grids, self.answers


@dataclass(frozen=True)
class _StoredProcessor:
    vocabulary: list[str]
    answers: list[str]
    grid: int
    max_words: int
