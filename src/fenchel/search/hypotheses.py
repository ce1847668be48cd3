"""Results of a search: hypotheses, and an upper bound on everything that is not among them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from fenchel.errors import FenchelError


@dataclass(frozen=True)
class Hypothesis:
    """A sequence of tokens, without the begin and end tokens, and its probability.

    If `finished` is false, the sequence was cut at the length limit, and `probability` is the
    total probability of all sequences that start with these tokens.
    """

    tokens: tuple[int, ...]
    probability: float
    log_probability: float
    finished: bool

    @classmethod
    def of(cls, tokens: tuple[int, ...], log_probability: float, *, finished: bool) -> Hypothesis:
        """Create a hypothesis from its log-probability."""
        if not -math.inf < log_probability <= 0:
            raise FenchelError(
                "a stepper must return probabilities that are not all zero, "
                f"got the log-probability {log_probability} for a sequence"
            )
        return cls(tokens, math.exp(log_probability), log_probability, finished)


@dataclass(frozen=True)
class Answer:
    """The most probable sequences found for one sentence, with a bound on all others.

    `dropped` is the largest probability of any prefix that was dropped, pruned or cut. A sequence
    is never more probable than its prefixes, so every sequence that is missing from `hypotheses`
    has a probability of at most `dropped`; 0 means that nothing was dropped.

    >>> one, two = Hypothesis.of((7,), -0.2, finished=True), Hypothesis.of((8,), -2.0, finished=True)
    >>> Answer((one, two), dropped=0.1).certified, Answer((one, two), dropped=0.1).complete
    (True, False)
    >>> Answer((two,), dropped=0.5).certified
    False
    """

    hypotheses: tuple[Hypothesis, ...]
    dropped: float

    @classmethod
    def of(cls, hypotheses: list[Hypothesis], log_dropped: float) -> Answer:
        """Create an answer from the logarithm of its bound.

        A bound that underflows is rounded up to the smallest normal float: subnormal floats have
        too few bits to be compared.
        """
        if not hypotheses:
            raise FenchelError("a stepper must return probabilities that are not all zero")
        dropped = 0.0
        if log_dropped > -math.inf:
            dropped = max(math.exp(log_dropped), sys.float_info.min)
        return cls(tuple(hypotheses), dropped)

    @property
    def best(self) -> Hypothesis:
        """The most probable hypothesis."""
        return self.hypotheses[0]

    @property
    def certified(self) -> bool:
        """Whether `best` is proven to be the most probable of all sequences."""
        return self.best.finished and self.dropped <= self.best.probability

    @property
    def complete(self) -> bool:
        """Whether `hypotheses` is proven to contain every sequence of non-zero probability."""
        return self.dropped == 0 and all(hypothesis.finished for hypothesis in self.hypotheses)

    @property
    def single(self) -> bool:
        """Whether one sequence is proven to have all of the probability."""
        return self.complete and len(self.hypotheses) == 1
