"""What a model must offer to be searched: one step, for many prefixes at once."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fenchel.errors import rule

BOS, EOS = 1, 2

State = Any


class Stepper(Protocol):
    """One step of a model, for B sentences with K prefixes (hypotheses, samples) each.

    What belongs to a sentence and never changes (encoder states, their mask) the stepper holds
    itself. What changes with every token is the state: tensors with leading dimensions (B, K) in
    any nesting of tuples, lists and dictionaries, which the search reorders as prefixes come and
    go. Other leaves (None, numbers) are handed back as they are.

    A stepper may have one more method, `select(rows: Tensor) -> Stepper`: the same model for the
    sentences `rows` alone. A search then stops computing sentences that are done.
    """

    @property
    def batch_size(self) -> int:
        """B, the number of sentences."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the tokens must be."""
        ...

    def start(self, width: int) -> State:
        """The state before the first token, for `width` prefixes a sentence."""
        ...

    def __call__(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The next-token probabilities (B, K, V) after the last tokens (B, K), and the new state."""
        ...


def step(stepper: Stepper, tokens: Tensor, state: State, eos: int) -> tuple[Tensor, State]:
    """One step of the stepper, whose probabilities must have the promised shape."""
    probabilities, state = stepper(tokens, state)
    shape = tuple(probabilities.shape)
    if shape[:-1] != tuple(tokens.shape) or shape[-1] <= max(eos, 1):
        raise rule(
            "a stepper returns probabilities of all tokens after each prefix",
            expected=f"({', '.join(map(str, tokens.shape))}, V) with V above {max(eos, 1)}",
            got=shape,
        )
    return probabilities, state


def reorder(state: State, slots: Tensor) -> State:
    """The state whose prefix k of sentence b is what stood at `slots[b, k]`, counted over (B, K)."""
    rows, width = slots.shape
    flat = slots.reshape(-1)

    def moved(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if leaf.shape[:2] != slots.shape:
            raise rule(
                "the tensors of a state begin with the dimensions (sentences, prefixes)",
                expected=f"({rows}, {width}, …)",
                got=tuple(leaf.shape),
            )
        return leaf.flatten(0, 1).index_select(0, flat).unflatten(0, (rows, width))

    return pytree.tree_map(moved, state)


def take_rows(state: State, rows: Tensor) -> State:
    """The state of the sentences `rows` alone."""
    return pytree.tree_map(
        lambda leaf: leaf.index_select(0, rows) if isinstance(leaf, Tensor) else leaf, state
    )


def steps_between_checks(device: torch.device) -> int:
    """After how many steps to ask whether all is done: the question makes the host wait for a GPU."""
    return 1 if device.type == "cpu" else 4
