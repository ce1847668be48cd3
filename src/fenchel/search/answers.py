"""What a search returns: hypotheses, and a bound on everything that is not among them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from fenchel.errors import rule

SMALLEST = sys.float_info.min  # below it, floats that differ are rounded to the same number


@dataclass(frozen=True)
class Hypothesis:
    """One sequence of tokens (without the marks of its begin and end) and its probability.

    `finished` says that it ended by itself; otherwise it was cut by the length limit, and
    `probability` is that of all sequences that begin with it.
    """

    tokens: tuple[int, ...]
    probability: float
    log_probability: float
    finished: bool

    @classmethod
    def of(cls, tokens: tuple[int, ...], log_probability: float, *, finished: bool) -> Hypothesis:
        """The hypothesis whose probability is known by its logarithm."""
        if not -math.inf < log_probability <= 0:
            raise rule(
                "a stepper must return probabilities, not all zero",
                expected="a finite log-probability of at most 0",
                got=f"{log_probability} for a sequence",
            )
        return cls(tokens, math.exp(log_probability), log_probability, finished)


@dataclass(frozen=True)
class Answer:
    """The best sequences a search found for one sentence, and what it can say about the others.

    `dropped` is the largest probability of a prefix that was ever dropped, pruned or cut. The
    probability of a sequence never exceeds that of its prefixes, so no sequence that is missing
    here is more probable than `dropped`; 0 says that nothing was dropped.

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
        """The answer with these hypotheses; a bound too small for a float is rounded up."""
        if not hypotheses:
            raise rule(
                "after every prefix the probabilities sum to 1",
                expected="at least one token of non-zero probability",
                got="none",
            )
        dropped = max(math.exp(log_dropped), SMALLEST) if log_dropped > -math.inf else 0.0
        return cls(tuple(hypotheses), dropped)

    @property
    def best(self) -> Hypothesis:
        """The most probable hypothesis that was found."""
        return self.hypotheses[0]

    @property
    def certified(self) -> bool:
        """Whether `best` is proven to be the most probable of all sequences."""
        return self.best.finished and self.dropped <= self.best.probability

    @property
    def complete(self) -> bool:
        """Whether the hypotheses are proven to be all sequences of non-zero probability."""
        return self.dropped == 0 and all(hypothesis.finished for hypothesis in self.hypotheses)

    @property
    def single(self) -> bool:
        """Whether the model is proven to give all probability to one sequence."""
        return self.complete and len(self.hypotheses) == 1
