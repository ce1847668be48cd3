"""Several models as one: the mean of their probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fenchel.errors import rule
from fenchel.search.stepper import State, Stepper


class Ensemble:
    """The stepper with probabilities (1/M) Σₘ pₘ(y | prefix), for the same sentences.

    The mean of sparse distributions is sparse: what all models rule out stays ruled out, and the
    certificates of the searches hold for the ensemble.

    >>> from fenchel.search import PrefixStepper, beam_search
    >>> one = PrefixStepper([lambda prefix: torch.tensor([0, 0, 0.2, 0.8, 0])])
    >>> two = PrefixStepper([lambda prefix: torch.tensor([0, 0, 1.0, 0, 0])])
    >>> answer, = beam_search(Ensemble([one, two]), width=2, max_length=9)
    >>> [(h.tokens, round(h.probability, 2)) for h in answer.hypotheses]
    [((), 0.6), ((3,), 0.24)]
    """

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        if len({stepper.batch_size for stepper in steppers}) != 1:
            raise rule(
                "an ensemble's steppers are for the same sentences",
                expected="one or more, of one batch size",
                got=[stepper.batch_size for stepper in steppers],
            )
        self._steppers = list(steppers)

    @property
    def batch_size(self) -> int:
        """The number of sentences."""
        return self._steppers[0].batch_size

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return self._steppers[0].device

    def start(self, width: int) -> State:
        """The states of all models."""
        return tuple(stepper.start(width) for stepper in self._steppers)

    def __call__(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The mean of the probabilities, in float32 at least, and the new states."""
        results = [
            stepper(tokens, of_model)
            for stepper, of_model in zip(self._steppers, state, strict=True)
        ]
        shapes = [tuple(probabilities.shape) for probabilities, _ in results]
        if len(set(shapes)) != 1:
            raise rule("an ensemble's models have one vocabulary", expected="one shape", got=shapes)
        total = torch.zeros(1, dtype=torch.float32, device=self.device)
        for probabilities, _ in results:
            total = total + probabilities
        return total / len(results), tuple(new for _, new in results)

    @property
    def select(self) -> Callable[[Tensor], Ensemble] | None:
        """How to take some sentences alone, if all models can."""
        selects = [getattr(stepper, "select", None) for stepper in self._steppers]
        if any(select is None for select in selects):
            return None
        return lambda rows: Ensemble([select(rows) for select in selects if select is not None])
