"""What a recipe is: everything that a run needs to know, in one frozen value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fenchel.errors import rule
from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.training.config import TrainingConfig

Format = Literal["inflection", "parallel"]
Metric = Literal["accuracy", "bleu", "rouge_l"]
SPECIAL = 4  # padding, begin, end, unknown: the vocabulary before any data were seen


def empty_model(**choices: Any) -> Seq2SeqConfig:
    """A model whose vocabularies hold the special symbols only; the data bring the rest."""
    return Seq2SeqConfig(source_size=SPECIAL, target_size=SPECIAL, **choices)


def _check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise rule(f"{name} is a number", expected=f"an integer of at least {least}", got=value)


@dataclass(frozen=True)
class DataConfig:
    """How files become symbols.

    Args:
        format: "inflection" (lemma, form, tags) or "parallel" (source, target).
        segmentation: "characters", "words" or "subwords".
        merges: the number of merges of "subwords".
        joint: one segmentation and one vocabulary for both sides.
        min_count: symbols that occur less often are unknown.
        held_out: the share of the training examples that serves as the development set if none is given.
    """

    format: Format = "parallel"
    segmentation: Literal["characters", "words", "subwords"] = "characters"
    merges: int = 8000
    joint: bool = False
    min_count: int = 1
    held_out: float = 0.1

    def __post_init__(self) -> None:
        _check_least("min_count", self.min_count, 1)
        _check_least("merges", self.merges, 0)
        if not 0 <= self.held_out < 1:
            raise rule("held_out is a share", expected="a number in [0, 1)", got=self.held_out)


@dataclass(frozen=True)
class SearchConfig:
    """How answers are found: beams of `width`, at most `max_length` symbols.

    `sentences` are searched at once: as many as suit the device unless given.
    """

    width: int = 5
    max_length: int = 100
    sentences: int | None = None

    def __post_init__(self) -> None:
        for name in ("width", "max_length", "sentences"):
            if getattr(self, name) is not None:
                _check_least(name, getattr(self, name), 1)


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

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Recipe:
        """The recipe that had this `state`."""
        parts = {
            "data": DataConfig,
            "model": Seq2SeqConfig,
            "training": TrainingConfig,
            "search": SearchConfig,
        }
        try:
            nested = {name: part(**state[name]) for name, part in parts.items()}
            return cls(**{**state, **nested})
        except (KeyError, TypeError) as error:
            raise rule(
                "a stored recipe is of this version", expected="its settings", got=error
            ) from error
