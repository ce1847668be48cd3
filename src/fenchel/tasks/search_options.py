"""Search for tasks that generate sequences: settings, command-line options, and the names of proofs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from fenchel.checks import check_count
from fenchel.errors import FenchelError
from fenchel.search import Answer, beam_search, exact_search, sample

LARGEST_SEARCH = 10_000
PROOFS = {
    "only": "all probability is on this answer",
    "complete": "all answers of non-zero probability",
    "best": "no answer is more probable",
    "unproven": "there may be a more probable answer",
}
SearchFunction = Callable[..., list[Answer]]


@dataclass(frozen=True)
class SearchConfig:
    """How predictions are searched for."""

    width: int = 5
    """Number of hypotheses that beam search keeps, at most 10,000."""
    max_length: int = 100
    """Maximum number of symbols in a prediction, at most 10,000."""
    sentences: int | None = None
    """Number of sentences searched together; None chooses it by the device."""

    def __post_init__(self) -> None:
        for name in ("width", "max_length", "sentences"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name)
        for name in ("width", "max_length"):  # a search allocates memory for their product
            if getattr(self, name) > LARGEST_SEARCH:
                got = getattr(self, name)
                raise FenchelError(f"{name} must be at most {LARGEST_SEARCH}, got {got}")


@dataclass(frozen=True)
class SearchOptions:
    """The options of an evaluation."""

    beam: int | None = None
    """Number of hypotheses kept in search [default: the run's search.width]."""


@dataclass(frozen=True)
class GenerationOptions(SearchOptions):
    """The options of predictions."""

    answers: int | None = None
    """Number of answers per line [default: 5 on a terminal, else 1]."""
    exact: bool = False
    """Search until the best answer is proven."""
    samples: int | None = None
    """Draw this many random answers instead of searching."""
    seed: int = 0
    """Random seed of --samples."""

    def __post_init__(self) -> None:
        for name in ("beam", "answers", "samples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise FenchelError(f"--{name} must be at least 1, got {value}")
        if not 0 <= self.seed < 2**63:
            raise FenchelError(f"--seed must be at least 0 and below 2^63, got {self.seed}")
        if self.exact and self.samples:
            raise FenchelError("--exact and --samples cannot be combined")

    def width(self, settings: SearchConfig) -> int:
        """The number of hypotheses that beam search keeps."""
        return self.beam or max(self.answers or 1, settings.width)

    def shown(self, *, terminal: bool) -> int:
        """The number of answers shown per line."""
        return max(self.answers or (5 if terminal else 1), self.samples or 0)

    def search(self, device: torch.device) -> SearchFunction:
        """The search that was asked for, with the signature of `fenchel.search.beam_search`."""
        if self.samples:
            generator = torch.Generator(device).manual_seed(self.seed)
            return partial(_draw, self.samples, generator)
        return partial(exact_search, answers=self.answers or 1) if self.exact else beam_search


def _draw(count: int, generator: torch.Generator, stepper: Any, **options: Any) -> list[Answer]:
    """Random answers, of which nothing is proven."""
    options.pop("width")
    drawn = sample(stepper, count, generator=generator, **options)
    return [Answer(hypotheses, dropped=1.0) for hypotheses in drawn]


def proof(answer: Answer, rank: int = 0) -> str:
    """What a search has proven of its answer at `rank`, as a key of `PROOFS`."""
    if answer.single:
        return "only"
    if answer.complete:
        return "complete"
    as_good = answer.hypotheses[rank].probability == answer.best.probability
    return "best" if answer.certified and as_good else "unproven"
