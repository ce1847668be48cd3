"""The interface between a model and a search, and two models that implement it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fenchel.errors import FenchelError

BOS, EOS = 1, 2

State = Any


class Stepper(Protocol):
    """One decoding step of a model, for K prefixes of each of B sentences.

    The stepper itself holds what is fixed for a sentence (encoder states, their mask). What changes
    with every token is the state: tensors with leading dimensions (B, K), in any nesting of
    tuples, lists and dictionaries. The search reorders them when it reorders the prefixes. Other
    leaves (None, numbers) are passed through unchanged.

    A stepper may also have a method `select(rows: Tensor) -> Stepper`, which returns a stepper for
    the sentences `rows` only. A search then stops computing sentences that are finished.
    """

    @property
    def batch_size(self) -> int:
        """The number of sentences, B."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of the tokens."""
        ...

    def start(self, width: int) -> State:
        """Return the state before the first token, for `width` prefixes per sentence."""
        ...

    def __call__(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the next-token probabilities (B, K, V) after `tokens` (B, K), and the new state."""
        ...


class PrefixStepper:
    """A stepper defined by one function per sentence: prefix of tokens ↦ probabilities (V,).

    Meant for examples and tests. Prefixes are evaluated one by one on the CPU, and each only once.
    The state is the prefixes themselves, including the begin token.

    >>> step = PrefixStepper([lambda prefix: torch.tensor([0.5, 0.5]) / (1 + len(prefix))])
    >>> probabilities, state = step(torch.tensor([[0]]), step.start(1))
    >>> step(torch.tensor([[1]]), state)[0]
    tensor([[[0.2500, 0.2500]]])
    """

    device = torch.device("cpu")

    def __init__(self, distributions: Sequence[Callable[[tuple[int, ...]], Tensor]]) -> None:
        self._distributions = list(distributions)
        if not self._distributions:
            raise FenchelError("distributions must contain at least one function, got none")
        self._cache: list[dict[tuple[int, ...], Tensor]] = [{} for _ in self._distributions]

    @property
    def batch_size(self) -> int:
        """The number of functions, one per sentence."""
        return len(self._distributions)

    def start(self, width: int) -> Tensor:
        """Return empty prefixes."""
        return torch.zeros(self.batch_size, width, 0, dtype=torch.int64)

    def __call__(self, tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities after the prefixes extended by `tokens`, and these prefixes."""
        prefixes = torch.cat((state, tokens.unsqueeze(-1)), -1)
        rows = [
            self._distribution(row, tuple(prefix[1:]))
            for row, of_row in enumerate(prefixes.tolist())
            for prefix in of_row
        ]
        shapes = sorted({tuple(row.shape) for row in rows})
        if len(shapes) > 1:
            raise FenchelError(
                f"all prefixes must share a vocabulary, got probabilities of the shapes {shapes}"
            )
        return torch.stack(rows).unflatten(0, tokens.shape), prefixes

    def select(self, rows: Tensor) -> PrefixStepper:
        """Return a stepper for the sentences `rows` only."""
        return PrefixStepper([self._distributions[row] for row in rows.tolist()])

    def _distribution(self, row: int, prefix: tuple[int, ...]) -> Tensor:
        cache = self._cache[row]
        if prefix not in cache:
            cache[prefix] = torch.as_tensor(self._distributions[row](prefix))
        return cache[prefix]


class Ensemble:
    """The stepper with the mean probabilities (1/M) Σₘ pₘ(y | prefix) of M steppers.

    The mean of sparse distributions is sparse: a token that every model gives probability zero
    keeps probability zero, and the certificates of a search hold for the ensemble.

    >>> from fenchel.search import PrefixStepper, beam_search
    >>> one = PrefixStepper([lambda prefix: torch.tensor([0, 0, 0.2, 0.8, 0])])
    >>> two = PrefixStepper([lambda prefix: torch.tensor([0, 0, 1.0, 0, 0])])
    >>> answer, = beam_search(Ensemble([one, two]), width=2, max_length=9)
    >>> [(h.tokens, round(h.probability, 2)) for h in answer.hypotheses]
    [((), 0.6), ((3,), 0.24)]
    """

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        sizes = [stepper.batch_size for stepper in steppers]
        if len(set(sizes)) != 1:
            raise FenchelError(
                "an ensemble must have at least one stepper, all with the same batch size, "
                f"got batch sizes {sizes}"
            )
        self._steppers = list(steppers)

    @property
    def batch_size(self) -> int:
        """The number of sentences."""
        return self._steppers[0].batch_size

    @property
    def device(self) -> torch.device:
        """The device of the models."""
        return self._steppers[0].device

    def start(self, width: int) -> State:
        """Return the initial states of all models."""
        return tuple(stepper.start(width) for stepper in self._steppers)

    def __call__(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the mean of the probabilities, in float32 or float64, and the new states."""
        results = [
            stepper(tokens, of_model)
            for stepper, of_model in zip(self._steppers, state, strict=True)
        ]
        shapes = [tuple(probabilities.shape) for probabilities, _ in results]
        if len(set(shapes)) != 1:
            raise FenchelError(
                "all models of an ensemble must share a vocabulary, "
                f"got probabilities of the shapes {shapes}"
            )
        total = torch.zeros(1, dtype=torch.float32, device=self.device)
        for probabilities, _ in results:
            total = total + probabilities
        return total / len(results), tuple(new for _, new in results)

    @property
    def select(self) -> Callable[[Tensor], Ensemble] | None:
        """A method that selects sentences, or None if one of the models has none."""
        selects = [getattr(stepper, "select", None) for stepper in self._steppers]
        if any(select is None for select in selects):
            return None
        return lambda rows: Ensemble([select(rows) for select in selects if select is not None])


def step(stepper: Stepper, tokens: Tensor, state: State, eos: int) -> tuple[Tensor, State]:
    """Call the stepper and check the shape of its probabilities."""
    probabilities, state = stepper(tokens, state)
    shape = tuple(probabilities.shape)
    if shape[:-1] != tuple(tokens.shape) or shape[-1] <= max(eos, 1):
        sizes = ", ".join(map(str, tokens.shape))
        raise FenchelError(
            f"a stepper must return probabilities of shape ({sizes}, V) with V > {max(eos, 1)}, "
            f"got {shape}"
        )
    return probabilities, state


def reorder(state: State, slots: Tensor) -> State:
    """Gather prefixes: prefix k of sentence b becomes number `slots[b, k]` of the B · K old ones."""
    rows, width = slots.shape
    flat = slots.reshape(-1)

    def moved(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if leaf.shape[:2] != slots.shape:
            raise FenchelError(
                "the tensors of a state must have the leading dimensions (sentences, prefixes) "
                f"= ({rows}, {width}), got the shape {tuple(leaf.shape)}"
            )
        return leaf.flatten(0, 1).index_select(0, flat).unflatten(0, (rows, width))

    return pytree.tree_map(moved, state)


def take_rows(state: State, rows: Tensor) -> State:
    """Return the state of the sentences `rows` only."""
    return pytree.tree_map(
        lambda leaf: leaf.index_select(0, rows) if isinstance(leaf, Tensor) else leaf, state
    )


def steps_between_checks(device: torch.device) -> int:
    """Return how often to check whether all sentences are finished; each check synchronizes a GPU."""
    return 1 if device.type == "cpu" else 4
