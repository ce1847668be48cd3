"""Labelled texts, one or several per example: files to examples, examples to tensors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from fenchel.data.bad_items import BadItems
from fenchel.data.ragged import Ragged
from fenchel.data.records import Record, read_examples
from fenchel.data.vocabulary import Vocabulary
from fenchel.errors import FenchelError
from fenchel.settings import from_json

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class Document(NamedTuple):
    """A text and its label, which is None if it is to be predicted.

    `place` is the file and the line where the text comes from, for errors.
    """

    text: str
    label: str | None = None
    place: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a model reads."""
        return (self.text,)


class SentencePair(NamedTuple):
    """A premise and a hypothesis, and their label, which is None if it is to be predicted.

    `place` is the file and the line where they come from, for errors.
    """

    premise: str
    hypothesis: str
    label: str | None = None
    place: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a model reads."""
        return self.premise, self.hypothesis


LabelledText = Document | SentencePair


class TextBatch(NamedTuple):
    """Texts padded with 0, and labels (B,).

    `inputs` are the arguments of a model: tokens (B, S) and lengths (B,) of each text of an example.
    """

    inputs: tuple[Tensor, ...]
    labels: Tensor


def text_fields(kind: type[LabelledText]) -> tuple[str, ...]:
    """The fields of the texts of an example.

    >>> text_fields(SentencePair)
    ('premise', 'hypothesis')
    """
    return tuple(name for name in kind._fields if name not in ("label", "place"))


def iterate_labelled_texts(
    path: str | PurePath,
    kind: type[LabelledText] = Document,
    *,
    need_targets: bool = True,
    columns: Mapping[str, str] | None = None,
    keep_blank: bool = False,
    bad: BadItems | None = None,
) -> Iterator[Any]:
    """Read the examples of a file of the fields `label` and those of the texts.

    Args:
        path: The file; "-" is standard input.
        kind: The class of the examples.
        need_targets: Whether every line has a label; without, labels are ignored and may be missing.
        columns: The names of columns or keys that differ from those of the fields.
        keep_blank: Whether a blank line is None instead of an error.
        bad: Takes the errors of bad lines; by default, the first is raised.
    """
    names = text_fields(kind)
    fields = ("label", *names)

    def make(record: Record) -> LabelledText:
        label = record.label("label") if need_targets else None
        texts = {name: record.text(name) for name in names}
        return kind(**texts, label=label, place=f"{record.lines.name}:{record.number}")

    required = fields if need_targets else names
    return read_examples(
        path, fields, make, required, columns=columns, keep_blank=keep_blank, bad=bad
    )


@dataclass(frozen=True)
class TextProcessor:
    """Splits texts into words and numbers words and labels.

    >>> documents = [Document("A superb film!", "good"), Document("It's a mess.", "bad")]
    >>> processor = TextProcessor.fit(documents)
    >>> processor.words("It's superb!"), processor.labels
    (["it's", 'superb', '!'], ['bad', 'good'])
    """

    vocabulary: Vocabulary
    labels: list[str]
    lowercase: bool = True
    max_words: int = 400

    @classmethod
    def fit(
        cls,
        examples: Sequence[LabelledText],
        *,
        max_size: int | None = None,
        min_count: int = 1,
        lowercase: bool = True,
        max_words: int = 400,
    ) -> TextProcessor:
        """The processor of a training set.

        Args:
            examples: Texts with labels.
            max_size: Maximum number of known words, the most frequent first.
            min_count: Words that occur less often than this are unknown.
            lowercase: Whether texts are converted to lower case.
            max_words: Maximum number of words of a text; the rest is cut off.
        """
        labels = sorted({str(example.label) for example in examples})
        if len(labels) < 2:
            raise FenchelError(f"examples must have at least two labels, got {', '.join(labels)}")
        bare = cls(Vocabulary(()), labels, lowercase, max_words)
        texts = chain.from_iterable(example.texts for example in examples)
        counts = Counter(chain.from_iterable(map(bare.words, texts)))
        vocabulary = Vocabulary.from_counts(counts, min_count, max_size)
        return cls(vocabulary, labels, lowercase, max_words)

    def words(self, text: str) -> list[str]:
        """Words and punctuation marks of a text."""
        found = WORD.findall(text.lower() if self.lowercase else text)
        return found[: self.max_words] or [text.strip()]

    def check(self, example: LabelledText) -> None:
        """Raise if the label of an example is not one of those in training."""
        if example.label is not None and example.label not in self.labels:
            place = f"{example.place}: " if example.place else ""
            rule = f"label must be one of those in training ({', '.join(self.labels)})"
            raise FenchelError(
                f"{place}{rule}, got {example.label!r} for {example.texts[0][:40]!r}"
            )

    def encode(self, examples: Sequence[LabelledText]) -> EncodedTexts:
        """Examples as tensors; those without a label get the number 0."""
        for example in examples:
            self.check(example)
        numbers = {label: number for number, label in enumerate(self.labels)}
        texts = zip(*(example.texts for example in examples), strict=True)
        tokens = [
            Ragged([self.vocabulary.ids(self.words(text)) for text in each]) for each in texts
        ]
        labels = [numbers.get(example.label or "", 0) for example in examples]
        return EncodedTexts(tuple(tokens), torch.tensor(labels))

    def state(self) -> dict[str, Any]:
        """The processor as JSON."""
        return asdict(_StoredProcessor(**{**vars(self), "vocabulary": self.vocabulary.state()}))

    @classmethod
    def from_state(cls, state: Any, where: str) -> TextProcessor:
        """The processor with this `state`; `where` names its file in errors."""
        stored = from_json(_StoredProcessor, state, where)
        vocabulary = Vocabulary.from_state(stored.vocabulary, f"{where}: vocabulary")
        return cls(vocabulary, stored.labels, stored.lowercase, stored.max_words)


@final
class EncodedTexts:
    """Labelled texts as tensors, from which batches are gathered."""

    def __init__(self, texts: tuple[Ragged, ...], labels: Tensor) -> None:
        self.texts, self.labels = texts, labels

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Tensor:
        """The numbers of words, (N, texts per example)."""
        return torch.stack([text.lengths for text in self.texts], 1)

    def batch(self, index: Tensor) -> TextBatch:
        """The examples at `index` (B,)."""
        device = self.labels.device
        pairs = ((text.padded(index), text.lengths[index].to(device)) for text in self.texts)
        return TextBatch(tuple(chain.from_iterable(pairs)), self.labels[index.to(device)])

    def to(self, device: torch.device | str) -> EncodedTexts:
        """The same examples on `device`."""
        texts = tuple(text.to(device) for text in self.texts)
        return EncodedTexts(texts, self.labels.to(device))

    def tensors(self) -> tuple[Tensor, ...]:
        """Words and lengths of each text, and labels."""
        parts = ((text.values, text.lengths) for text in self.texts)
        return *chain.from_iterable(parts), self.labels


@dataclass(frozen=True)
class _StoredProcessor:
    vocabulary: list[str]
    labels: list[str]
    lowercase: bool
    max_words: int
