"""Exact search by branch and bound: the most probable sequences, or the whole support."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fenchel.search.beam import NEG_INF, beam_search
from fenchel.search.frontier import Frontier, Prefix, StateStorage, busiest_depth
from fenchel.search.hypotheses import Answer
from fenchel.search.stepper import BOS, EOS, Stepper, step
from fenchel.search.validate import (
    ProbabilityCheck,
    check_positive,
    clamp_probabilities,
    row_statistics,
)


@torch.no_grad()
def exact_search(
    stepper: Stepper,
    *,
    max_length: int,
    answers: int = 1,
    width: int = 8,
    nodes: int = 10_000,
    bos: int = BOS,
    eos: int = EOS,
) -> list[Answer]:
    """Find the `answers` most probable of all sequences by branch and bound, with a proof.

    A beam search of this width comes first. If it proves nothing, every prefix that is more
    probable than the last of the `answers` found so far is expanded, `width` prefixes per sentence
    at a time, the longest first. A sequence is never more probable than its prefixes, so the other
    prefixes can be ignored. The search of a sentence gives up after expanding `nodes` prefixes;
    `Answer.certified` says whether there is a proof.

    Few prefixes lie above the bound for sparse models and for peaked dense ones; for flat
    distributions their number can grow exponentially with the length. The prefixes of one call of
    the stepper have the same length, so that states may grow with it (key–value caches).

    >>> from fenchel import search
    >>> first, garden = torch.tensor([0, 0, 0, 0.6, 0.4]), torch.tensor([0, 0, 0.5, 0.3, 0.2])
    >>> def probabilities(prefix):  # the more probable first token leads into uncertainty
    ...     return (garden if prefix[:1] == (3,) else torch.eye(5)[2]) if prefix else first
    >>> stepper = search.PrefixStepper([probabilities])
    >>> search.beam_search(stepper, width=1, max_length=9)[0].best.tokens
    (3,)
    >>> answer, = search.exact_search(stepper, width=1, max_length=9)
    >>> answer.best.tokens, round(answer.best.probability, 3), answer.certified
    ((4,), 0.4, True)
    """
    check_positive(nodes=nodes)
    initial = beam_search(
        stepper, width=width, max_length=max_length, answers=answers, bos=bos, eos=eos
    )
    frontiers = [Frontier(answer, answers) for answer in initial]
    for frontier in frontiers:
        if _proven(frontier.initial, answers):
            frontier.prefixes.clear()
    search = _BranchAndBound(stepper, frontiers, width, max_length, (bos, eos))
    while (depth := busiest_depth(search.frontiers, width)) is not None:
        search.drop_finished_sentences()
        search.expand(depth)
        for frontier in search.frontiers:
            frontier.prune(nodes - frontier.expanded)
    return [f.answer() if f.expanded else f.initial for f in frontiers]


def support(
    stepper: Stepper,
    *,
    max_length: int,
    limit: int = 100,
    width: int = 8,
    nodes: int = 10_000,
    bos: int = BOS,
    eos: int = EOS,
) -> list[Answer]:
    """Find all sequences of non-zero probability, the most probable first, if there are at most `limit`.

    The answer is then `complete`. If there are more, it holds the `limit` most probable ones, and
    `dropped` bounds the others.

    >>> from fenchel import search
    >>> row = torch.tensor([0, 0, 0.5, 0.25, 0.25])
    >>> stepper = search.PrefixStepper([lambda prefix: row if len(prefix) < 2 else torch.eye(5)[2]])
    >>> answer, = search.support(stepper, max_length=5)
    >>> answer.complete, len(answer.hypotheses), sum(h.probability for h in answer.hypotheses)
    (True, 7, 1.0)
    """
    check_positive(limit=limit)
    return exact_search(
        stepper, max_length=max_length, answers=limit, width=width, nodes=nodes, bos=bos, eos=eos
    )


def _proven(answer: Answer, answers: int) -> bool:
    """Whether these are the `answers` most probable sequences, or all of them."""
    last = answer.hypotheses[-1]
    enough = len(answer.hypotheses) == answers and last.finished
    return answer.complete or (enough and answer.dropped <= last.probability)


class _BranchAndBound:
    """A batch of sentences that are searched together: their frontiers, stepper and model states."""

    def __init__(
        self,
        stepper: Stepper,
        frontiers: list[Frontier],
        width: int,
        max_length: int,
        special_tokens: tuple[int, int],
    ) -> None:
        self.stepper, self.frontiers = stepper, frontiers
        self.width, self.max_length = width, max_length
        self.bos, self.eos = special_tokens
        self.storages = {0: StateStorage(stepper.start(width))}
        self.check = ProbabilityCheck(stepper.device)

    def expand(self, depth: int) -> None:
        """Extend up to `width` prefixes of length `depth` per sentence by all tokens."""
        popped = [frontier.pop(depth, self.width) for frontier in self.frontiers]
        if not any(popped):
            return
        tokens = self._padded(
            [[p.tokens[-1] if p.tokens else self.bos for p in row] for row in popped]
        )
        slots = self._padded([[p.slot for p in row] for row in popped])
        probabilities, state = step(
            self.stepper, tokens, self.storages[depth].read(slots), self.eos
        )
        new_slots = self._add_extensions(popped, probabilities)
        if depth == self.max_length:
            return
        needed = 1 + max((slot for row in new_slots for slot in row), default=0)
        if depth + 1 not in self.storages:
            self.storages[depth + 1] = StateStorage(pytree.tree_map(_copy, state))
        self.storages[depth + 1].write(self._padded(new_slots), state, needed)

    def _add_extensions(self, popped: list[list[Prefix]], probabilities: Tensor) -> list[list[int]]:
        """Add the extensions above the bound to the frontiers; return the slots of the new states."""
        device = probabilities.device
        bounds = [[frontier.bound] for frontier in self.frontiers]
        scores = self._padded([[-p.cost for p in row] for row in popped], NEG_INF)
        self.check.add(row_statistics(probabilities), unused=scores == NEG_INF)
        self.check.raise_if_invalid()
        joint = scores.unsqueeze(-1) + clamp_probabilities(probabilities).log()
        above = joint > torch.tensor(bounds, dtype=torch.float64, device=device).unsqueeze(-1)
        best_below = joint.masked_fill(above, NEG_INF).flatten(1).amax(-1).tolist()
        for frontier, score in zip(self.frontiers, best_below, strict=True):
            frontier.cut = max(frontier.cut, score)
        slots = [[0] * len(row) for row in popped]
        indices, values = above.nonzero().tolist(), joint[above].tolist()
        for (row, place, token), score in zip(indices, values, strict=True):
            frontier, prefix = self.frontiers[row], popped[row][place].tokens
            if token == self.eos:
                frontier.add_finished(prefix, score)
            elif len(prefix) == self.max_length:
                frontier.cut = max(frontier.cut, score)
            else:
                if not slots[row][place]:
                    slots[row][place] = frontier.free_slot(len(prefix) + 1)
                frontier.push((*prefix, token), score, slots[row][place])
        return slots

    def drop_finished_sentences(self) -> None:
        """Stop computing finished sentences, once they are at least half of the batch."""
        active = [row for row, frontier in enumerate(self.frontiers) if frontier.prefixes]
        select = getattr(self.stepper, "select", None)
        if select is None or 2 * len(active) > len(self.frontiers):
            return
        rows = torch.tensor(active, device=self.stepper.device)
        self.stepper = select(rows)
        self.frontiers = [self.frontiers[row] for row in active]
        for storage in self.storages.values():
            storage.take(rows)

    def _padded(self, rows: list[list], padding: float = 0) -> Tensor:
        """Pad lists of up to `width` numbers to a tensor (B, width)."""
        full = [[*row, *[padding] * (self.width - len(row))] for row in rows]
        dtype = torch.float64 if padding == NEG_INF else torch.int64
        return torch.tensor(full, dtype=dtype, device=self.stepper.device)


def _copy(leaf: object) -> object:
    return leaf.clone() if isinstance(leaf, Tensor) else leaf
