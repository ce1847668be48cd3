"""A model given as a function of prefixes: for examples, tests and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fenchel.errors import rule

Distribution = Callable[[tuple[int, ...]], Tensor]


class PrefixStepper:
    """A stepper that asks a function a sentence: prefix of tokens ↦ probabilities (V,).

    It runs one prefix after another, on the CPU; each prefix is asked for once. Its state is the
    prefixes themselves, the first token (the mark of the begin) included.

    >>> step = PrefixStepper([lambda prefix: torch.tensor([0.5, 0.5]) / (1 + len(prefix))])
    >>> probabilities, state = step(torch.tensor([[0]]), step.start(1))
    >>> step(torch.tensor([[1]]), state)[0]
    tensor([[[0.2500, 0.2500]]])
    """

    device = torch.device("cpu")

    def __init__(self, distributions: Sequence[Distribution]) -> None:
        self._distributions = list(distributions)
        if not self._distributions:
            raise rule("a stepper has sentences", expected="at least one function", got="none")
        self._known: list[dict[tuple[int, ...], Tensor]] = [{} for _ in self._distributions]

    @property
    def batch_size(self) -> int:
        """The number of functions: each is a sentence."""
        return len(self._distributions)

    def start(self, width: int) -> Tensor:
        """No tokens so far."""
        return torch.zeros(self.batch_size, width, 0, dtype=torch.int64)

    def __call__(self, tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """The probabilities after the prefixes that these tokens continue."""
        prefixes = torch.cat((state, tokens.unsqueeze(-1)), -1)
        rows = [
            self._ask(row, tuple(prefix[1:]))
            for row, of_row in enumerate(prefixes.tolist())
            for prefix in of_row
        ]
        shapes = sorted({tuple(row.shape) for row in rows})
        if len(shapes) > 1:
            raise rule("all prefixes have one vocabulary", expected="one shape", got=shapes)
        return torch.stack(rows).unflatten(0, tokens.shape), prefixes

    def select(self, rows: Tensor) -> PrefixStepper:
        """The stepper of some of the sentences."""
        return PrefixStepper([self._distributions[row] for row in rows.tolist()])

    def _ask(self, row: int, prefix: tuple[int, ...]) -> Tensor:
        known = self._known[row]
        if prefix not in known:
            known[prefix] = torch.as_tensor(self._distributions[row](prefix))
        return known[prefix]
