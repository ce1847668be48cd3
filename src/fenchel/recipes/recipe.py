"""What a recipe is: everything that a run needs to know, in one frozen value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fenchel.data.normalization import Normalization, check_normalization
from fenchel.data.vocabulary import SPECIAL
from fenchel.errors import FenchelError, rule
from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.training.config import TrainingConfig, check_count

Format = Literal["inflection", "parallel"]
Metric = Literal["accuracy", "bleu", "rouge_l"]
LARGEST_SEARCH = 10_000


def empty_model(**choices: Any) -> Seq2SeqConfig:
    """A model whose vocabularies hold the special symbols only; the data bring the rest."""
    return Seq2SeqConfig(source_size=len(SPECIAL), target_size=len(SPECIAL), **choices)


@dataclass(frozen=True)
class DataConfig:
    """How files become symbols.

    Args:
        format: "inflection" (lemma, form, tags) or "parallel" (source, target).
        segmentation: "characters", "words" or "subwords".
        merges: the number of merges of "subwords".
        joint: one segmentation and one vocabulary for both sides.
        min_count: symbols that occur less often are unknown.
        normalization: the normal form of Unicode in which everything is read, written and compared, so
            that an é is an é however a file spells it; "none" tells the spellings apart.
        held_out: the share of the training examples that serves as the development set if none is given.
    """

    format: Format = "parallel"
    segmentation: Literal["characters", "words", "subwords"] = "characters"
    merges: int = 8000
    joint: bool = False
    min_count: int = 1
    normalization: Normalization = "NFC"
    held_out: float = 0.1

    def __post_init__(self) -> None:
        check_count("min_count", self.min_count, least=1)
        check_count("merges", self.merges, least=0)
        check_normalization(self.normalization)
        if not 0 <= self.held_out < 1:
            raise rule("held_out is a share", expected="a number in [0, 1)", got=self.held_out)


@dataclass(frozen=True)
class SearchConfig:
    """How answers are found.

    Args:
        width: hypotheses that search keeps, at most 10,000.
        max_length: symbols of an answer at most, up to 10,000.
        sentences: searched at once; as many as suit the device if None.
    """

    width: int = 5
    max_length: int = 100
    sentences: int | None = None

    def __post_init__(self) -> None:
        for name in ("width", "max_length", "sentences"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), least=1)
        for name in ("width", "max_length"):  # a search allocates memory for their product
            if getattr(self, name) > LARGEST_SEARCH:
                got = getattr(self, name)
                raise FenchelError(f"{name} must be at most {LARGEST_SEARCH}, got {got}")


@dataclass(frozen=True)
class Recipe:
    """A task with all its settings.

    Args:
        name, summary: what it is called, and what it does in one sentence.
        metric: the main figure of an evaluation.
    """

    name: str
    summary: str
    metric: Metric
    data: DataConfig
    model: Seq2SeqConfig
    training: TrainingConfig
    search: SearchConfig = field(default_factory=SearchConfig)

    def state(self) -> dict[str, Any]:
        """The recipe as JSON can hold it."""
        return asdict(self)
