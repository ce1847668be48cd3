"""The prefixes that an exact search has not continued yet, and what it knows of a sentence."""

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

from fenchel.search.answers import Answer, Hypothesis
from fenchel.search.stepper import State


class Prefix(NamedTuple):
    """A prefix that waits; ordered so that the most probable comes first."""

    cost: float  # −log-probability
    tokens: tuple[int, ...]
    slot: int  # where the state before its last token is stored


class Sentence:
    """One sentence: the best sequences so far, and the prefixes that may lead to better ones.

    `bound` is the log-probability that a sequence must exceed to be among the answers.
    """

    def __init__(self, known: Answer, answers: int) -> None:
        self.known, self.answers = known, answers
        self.waiting: dict[int, list[Prefix]] = {0: [Prefix(0.0, (), 0)]}
        self.nodes = 0
        self.cut = self.evicted = -math.inf
        self._uses: dict[int, Counter[int]] = {}
        self._found = [(h.log_probability, h.tokens) for h in known.hypotheses if h.finished]
        heapq.heapify(self._found)
        self._seen = {tokens for _, tokens in self._found}

    @property
    def bound(self) -> float:
        """What the least of the answers has; −inf as long as there are too few."""
        return self._found[0][0] if len(self._found) == self.answers else -math.inf

    def pop(self, depth: int, count: int) -> list[Prefix]:
        """Up to `count` prefixes of this length, the most probable first."""
        heap = self.waiting.get(depth, [])
        popped: list[Prefix] = []
        while heap and len(popped) < count and -heap[0].cost > self.bound:
            popped.append(heapq.heappop(heap))
        if heap and -heap[0].cost <= self.bound:
            self.cut = max(self.cut, -heap[0].cost)
            heap.clear()
        if heap:
            self._uses[depth].subtract(prefix.slot for prefix in popped)
        else:
            self.waiting.pop(depth, None)
            self._uses.pop(depth, None)
        self.nodes += len(popped)
        return popped

    def push(self, tokens: tuple[int, ...], score: float, slot: int) -> None:
        """Let a prefix wait."""
        heapq.heappush(self.waiting.setdefault(len(tokens), []), Prefix(-score, tokens, slot))
        self._uses.setdefault(len(tokens), Counter())[slot] += 1

    def free_slot(self, depth: int) -> int:
        """A place that no waiting prefix of this length needs; never 0, which is for anything."""
        uses = self._uses.get(depth, Counter())
        return next(slot for slot in itertools.count(1) if uses[slot] == 0)

    def keep(self, most: int) -> None:
        """Leave all but the `most` most probable of what waits; the best may then be left out.

        It is done now and then, so that memory stays within a few times `most`.
        """
        if 0 < sum(map(len, self.waiting.values())) <= 2 * most:
            return
        ranked = sorted(prefix for heap in self.waiting.values() for prefix in heap)
        self.cut = max([self.cut, *(-prefix.cost for prefix in ranked[max(most, 0) :][:1])])
        self.waiting, self._uses = {}, {}
        for prefix in ranked[: max(most, 0)]:
            self.push(prefix.tokens, -prefix.cost, prefix.slot)

    def finish(self, tokens: tuple[int, ...], score: float) -> None:
        """A sequence has ended; it may replace the least of the answers."""
        if tokens in self._seen:
            return
        self._seen.add(tokens)
        heapq.heappush(self._found, (score, tokens))
        if len(self._found) > self.answers:
            score, tokens = heapq.heappop(self._found)
            self._seen.discard(tokens)
            self.evicted = max(self.evicted, score)

    def answer(self) -> Answer:
        """What was found. Both this search and the one before bound what is missing."""
        known = math.log(self.known.dropped) if self.known.dropped > 0 else -math.inf
        dropped = max(self.evicted, min(self.cut, known))
        best = sorted(self._found, key=lambda entry: (-entry[0], entry[1]))
        found = [Hypothesis.of(tokens, score, finished=True) for score, tokens in best]
        return Answer.of(found or list(self.known.hypotheses), dropped)


class Storage:
    """The states of one length: tensors (B, slots, …) that grow as more prefixes wait."""

    def __init__(self, state: State) -> None:
        self.state = state

    def read(self, slots: Tensor) -> State:
        """The states (B, K, …) in these slots (B, K)."""
        rows = torch.arange(len(slots), device=slots.device).unsqueeze(-1)
        return self._map(lambda leaf: leaf[rows, slots])

    def write(self, slots: Tensor, state: State, needed: int) -> None:
        """Put the states (B, K, …) into these slots; there must be room for `needed` slots."""
        leaves, structure = pytree.tree_flatten(self.state)
        rows = torch.arange(len(slots), device=slots.device).unsqueeze(-1)
        for place, new in enumerate(pytree.tree_leaves(state)):
            if isinstance(new, Tensor):
                leaves[place] = _with_room(leaves[place], needed)
                leaves[place][rows, slots] = new
        self.state = pytree.tree_unflatten(leaves, structure)

    def take(self, rows: Tensor) -> None:
        """Keep these sentences alone."""
        self.state = self._map(lambda leaf: leaf[rows])

    def _map(self, function: Any) -> State:
        return pytree.tree_map(
            lambda leaf: function(leaf) if isinstance(leaf, Tensor) else leaf, self.state
        )


def most_waiting(sentences: Iterable[Sentence], width: int) -> int | None:
    """The length at which a call with `width` prefixes a sentence does most; of equals the longest.

    Once `width` prefixes wait further on, they go first: a search that goes to the depth.
    """
    work: dict[int, int] = {}
    for sentence in sentences:
        for depth, heap in sentence.waiting.items():
            work[depth] = work.get(depth, 0) + min(width, len(heap))
    return max(work, key=lambda depth: (work[depth], depth), default=None)


def _with_room(leaf: Tensor, needed: int) -> Tensor:
    if leaf.shape[1] >= needed:
        return leaf
    room = leaf.new_zeros((leaf.shape[0], max(needed, 2 * leaf.shape[1]), *leaf.shape[2:]))
    room[:, : leaf.shape[1]] = leaf
    return room
