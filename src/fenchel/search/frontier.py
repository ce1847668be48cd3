"""The state of an exact search: open prefixes, sequences found, and stored model states."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fenchel.search.hypotheses import Answer, Hypothesis
from fenchel.search.stepper import State


class Prefix(NamedTuple):
    """A prefix that has not been expanded yet; the most probable one sorts first."""

    cost: float  # −log-probability
    tokens: tuple[int, ...]
    slot: int  # where the state before its last token is stored


class Frontier:
    """The open prefixes of one sentence, by length, and the best sequences found so far.

    `initial` is the answer of the beam search that came before. `cut` and `evicted` are the largest
    log-probabilities of a prefix that was discarded and of a finished sequence that was replaced.
    """

    def __init__(self, initial: Answer, answers: int) -> None:
        self.initial, self.answers = initial, answers
        self.prefixes: dict[int, list[Prefix]] = {0: [Prefix(0.0, (), 0)]}
        self.expanded = 0
        self.cut = self.evicted = -math.inf
        self._slot_uses: dict[int, Counter[int]] = {}
        self._found = [(h.log_probability, h.tokens) for h in initial.hypotheses if h.finished]
        heapq.heapify(self._found)
        self._found_tokens = {tokens for _, tokens in self._found}

    @property
    def bound(self) -> float:
        """The log-probability that a sequence must exceed to be among the best `answers`."""
        return self._found[0][0] if len(self._found) == self.answers else -math.inf

    def pop(self, depth: int, count: int) -> list[Prefix]:
        """Remove and return up to `count` prefixes of length `depth`, the most probable first."""
        heap = self.prefixes.get(depth, [])
        popped: list[Prefix] = []
        while heap and len(popped) < count and -heap[0].cost > self.bound:
            popped.append(heapq.heappop(heap))
        if heap and -heap[0].cost <= self.bound:
            self.cut = max(self.cut, -heap[0].cost)
            heap.clear()
        if heap:
            self._slot_uses[depth].subtract(prefix.slot for prefix in popped)
        else:
            self.prefixes.pop(depth, None)
            self._slot_uses.pop(depth, None)
        self.expanded += len(popped)
        return popped

    def push(self, tokens: tuple[int, ...], score: float, slot: int) -> None:
        """Add an open prefix."""
        heapq.heappush(self.prefixes.setdefault(len(tokens), []), Prefix(-score, tokens, slot))
        self._slot_uses.setdefault(len(tokens), Counter())[slot] += 1

    def free_slot(self, depth: int) -> int:
        """Return a slot that no open prefix of length `depth` uses; 0 is reserved for padding."""
        uses = self._slot_uses.get(depth, Counter())
        return next(slot for slot in itertools.count(1) if uses[slot] == 0)

    def prune(self, limit: int) -> None:
        """Discard all but the `limit` most probable open prefixes, once there are twice as many.

        This bounds the memory; `cut` keeps the answer's bound valid.
        """
        if 0 < sum(map(len, self.prefixes.values())) <= 2 * limit:
            return
        ranked = sorted(prefix for heap in self.prefixes.values() for prefix in heap)
        self.cut = max([self.cut, *(-prefix.cost for prefix in ranked[max(limit, 0) :][:1])])
        self.prefixes, self._slot_uses = {}, {}
        for prefix in ranked[: max(limit, 0)]:
            self.push(prefix.tokens, -prefix.cost, prefix.slot)

    def add_finished(self, tokens: tuple[int, ...], score: float) -> None:
        """Add a finished sequence, which may replace the least probable one found."""
        if tokens in self._found_tokens:
            return
        self._found_tokens.add(tokens)
        heapq.heappush(self._found, (score, tokens))
        if len(self._found) > self.answers:
            score, tokens = heapq.heappop(self._found)
            self._found_tokens.discard(tokens)
            self.evicted = max(self.evicted, score)

    def answer(self) -> Answer:
        """Return what was found; the bounds of this search and of the beam search both hold."""
        initial = math.log(self.initial.dropped) if self.initial.dropped > 0 else -math.inf
        dropped = max(self.evicted, min(self.cut, initial))
        best = sorted(self._found, key=lambda entry: (-entry[0], entry[1]))
        found = [Hypothesis.of(tokens, score, finished=True) for score, tokens in best]
        return Answer.of(found or list(self.initial.hypotheses), dropped)


def busiest_depth(frontiers: Iterable[Frontier], width: int) -> int | None:
    """Return the length at which expanding `width` prefixes per sentence expands the most.

    Ties go to the greater length, which makes the search depth-first once `width` prefixes are
    open there. None means that no prefixes are open.
    """
    work: dict[int, int] = {}
    for frontier in frontiers:
        for depth, heap in frontier.prefixes.items():
            work[depth] = work.get(depth, 0) + min(width, len(heap))
    return max(work, key=lambda depth: (work[depth], depth), default=None)


class StateStorage:
    """The model states of open prefixes of one length: tensors (B, slots, …) that grow on demand."""

    def __init__(self, state: State) -> None:
        self.state = state

    def read(self, slots: Tensor) -> State:
        """Return the states (B, K, …) in the slots (B, K)."""
        rows = torch.arange(len(slots), device=slots.device).unsqueeze(-1)
        return self._map(lambda leaf: leaf[rows, slots])

    def write(self, slots: Tensor, state: State, needed: int) -> None:
        """Store the states (B, K, …) in the slots (B, K), growing to at least `needed` slots."""
        leaves, structure = pytree.tree_flatten(self.state)
        rows = torch.arange(len(slots), device=slots.device).unsqueeze(-1)
        for place, new in enumerate(pytree.tree_leaves(state)):
            if isinstance(new, Tensor):
                leaves[place] = _grown(leaves[place], needed)
                leaves[place][rows, slots] = new
        self.state = pytree.tree_unflatten(leaves, structure)

    def take(self, rows: Tensor) -> None:
        """Keep the sentences `rows` only."""
        self.state = self._map(lambda leaf: leaf[rows])

    def _map(self, function: Any) -> State:
        return pytree.tree_map(
            lambda leaf: function(leaf) if isinstance(leaf, Tensor) else leaf, self.state
        )


def _grown(leaf: Tensor, needed: int) -> Tensor:
    if leaf.shape[1] >= needed:
        return leaf
    grown = leaf.new_zeros((leaf.shape[0], max(needed, 2 * leaf.shape[1]), *leaf.shape[2:]))
    grown[:, : leaf.shape[1]] = leaf
    return grown
