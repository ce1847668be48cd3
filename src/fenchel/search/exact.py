"""Exact search: the most probable sequences with a proof, or the whole support."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fenchel.search.answers import Answer
from fenchel.search.beam import NEVER, beam_search
from fenchel.search.frontier import Prefix, Sentence, Storage, most_waiting
from fenchel.search.sizes import positive
from fenchel.search.soundness import Soundness, bounded, summarize
from fenchel.search.stepper import BOS, EOS, Stepper, step


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
    """Find the `answers` most probable of all sequences, by branch and bound, and prove it.

    A beam search of this width comes first. Where it is no proof, every prefix more probable
    than the last of the answers so far is continued, `width` prefixes a sentence at once, the
    longest first: no prefix is ever less probable than what begins with it, so the others cannot
    matter. After `nodes` prefixes of a sentence the search gives up; `certified` tells.

    The number of prefixes above the bound is small for sparse models and for peaked dense ones;
    it can grow exponentially with the length for flat ones. The prefixes of a call have one
    length, so that states may grow with it (key–value caches).

    >>> from fenchel import search
    >>> first, garden = torch.tensor([0, 0, 0, 0.6, 0.4]), torch.tensor([0, 0, 0.5, 0.3, 0.2])
    >>> def probabilities(prefix):  # the likelier first token leads into uncertainty
    ...     return (garden if prefix[:1] == (3,) else torch.eye(5)[2]) if prefix else first
    >>> stepper = search.PrefixStepper([probabilities])
    >>> search.beam_search(stepper, width=1, max_length=9)[0].best.tokens
    (3,)
    >>> answer, = search.exact_search(stepper, width=1, max_length=9)
    >>> answer.best.tokens, round(answer.best.probability, 3), answer.certified
    ((4,), 0.4, True)
    """
    positive(nodes=nodes)
    known = beam_search(
        stepper, width=width, max_length=max_length, answers=answers, bos=bos, eos=eos
    )
    sentences = [Sentence(answer, answers) for answer in known]
    for sentence in sentences:
        if _proven(sentence.known, answers):
            sentence.waiting.clear()
    search = _Search(stepper, sentences, width, max_length, (bos, eos))
    while (depth := most_waiting(search.sentences, width)) is not None:
        search.drop_idle_sentences()
        search.expand(depth)
        for sentence in search.sentences:
            sentence.keep(nodes - sentence.nodes)
    return [s.answer() if s.nodes else s.known for s in sentences]


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
    """All sequences of non-zero probability, best first, if they are at most `limit`: `complete`.

    If there are more, the `limit` most probable of them, and `dropped` bounds the others.

    >>> from fenchel import search
    >>> row = torch.tensor([0, 0, 0.5, 0.25, 0.25])
    >>> stepper = search.PrefixStepper([lambda prefix: row if len(prefix) < 2 else torch.eye(5)[2]])
    >>> answer, = search.support(stepper, max_length=5)
    >>> answer.complete, len(answer.hypotheses), sum(h.probability for h in answer.hypotheses)
    (True, 7, 1.0)
    """
    positive(limit=limit)
    return exact_search(
        stepper, max_length=max_length, answers=limit, width=width, nodes=nodes, bos=bos, eos=eos
    )


def _proven(answer: Answer, answers: int) -> bool:
    """Whether these are the `answers` most probable sequences, or all there are."""
    last = answer.hypotheses[-1]
    enough = len(answer.hypotheses) == answers and last.finished
    return answer.complete or (enough and answer.dropped <= last.probability)


class _Search:
    """The sentences that are searched, their stepper, and the states of their prefixes."""

    def __init__(
        self,
        stepper: Stepper,
        sentences: list[Sentence],
        width: int,
        max_length: int,
        marks: tuple[int, int],
    ) -> None:
        self.stepper, self.sentences = stepper, sentences
        self.width, self.max_length = width, max_length
        self.bos, self.eos = marks
        self.storages = {0: Storage(stepper.start(width))}
        self.sound = Soundness(stepper.device)

    def expand(self, depth: int) -> None:
        """Continue up to `width` prefixes of this length of every sentence by all tokens."""
        popped = [sentence.pop(depth, self.width) for sentence in self.sentences]
        if not any(popped):
            return
        tokens = self._table(
            [[p.tokens[-1] if p.tokens else self.bos for p in row] for row in popped]
        )
        slots = self._table([[p.slot for p in row] for row in popped])
        probabilities, state = step(
            self.stepper, tokens, self.storages[depth].read(slots), self.eos
        )
        kept = self._children(popped, probabilities)
        if depth == self.max_length:
            return
        needed = 1 + max((slot for row in kept for slot in row), default=0)
        if depth + 1 not in self.storages:
            self.storages[depth + 1] = Storage(pytree.tree_map(_copy, state))
        self.storages[depth + 1].write(self._table(kept), state, needed)

    def _children(self, popped: list[list[Prefix]], probabilities: Tensor) -> list[list[int]]:
        """Let the continuations wait or end; the slots that the new states must go to."""
        device = probabilities.device
        bounds = [[sentence.bound] for sentence in self.sentences]
        scores = self._table([[-p.cost for p in row] for row in popped], NEVER)
        self.sound.look(summarize(probabilities), scores == NEVER)
        self.sound.check()
        joint = scores.unsqueeze(-1) + bounded(probabilities).log()
        above = joint > torch.tensor(bounds, dtype=torch.float64, device=device).unsqueeze(-1)
        lost = joint.masked_fill(above, NEVER).flatten(1).amax(-1).tolist()
        for sentence, value in zip(self.sentences, lost, strict=True):
            sentence.cut = max(sentence.cut, value)
        kept = [[0] * len(row) for row in popped]
        places, values = above.nonzero().tolist(), joint[above].tolist()
        for (row, place, token), score in zip(places, values, strict=True):
            sentence, prefix = self.sentences[row], popped[row][place].tokens
            if token == self.eos:
                sentence.finish(prefix, score)
            elif len(prefix) == self.max_length:
                sentence.cut = max(sentence.cut, score)
            else:
                if not kept[row][place]:
                    kept[row][place] = sentence.free_slot(len(prefix) + 1)
                sentence.push((*prefix, token), score, kept[row][place])
        return kept

    def drop_idle_sentences(self) -> None:
        """Search on with the sentences that have something left, once they are at most half."""
        busy = [place for place, sentence in enumerate(self.sentences) if sentence.waiting]
        select = getattr(self.stepper, "select", None)
        if select is None or 2 * len(busy) > len(self.sentences):
            return
        rows = torch.tensor(busy, device=self.stepper.device)
        self.stepper = select(rows)
        self.sentences = [self.sentences[place] for place in busy]
        for storage in self.storages.values():
            storage.take(rows)

    def _table(self, rows: list[list], filling: float = 0) -> Tensor:
        """Lists of up to `width` numbers as a tensor (B, width)."""
        full = [[*row, *[filling] * (self.width - len(row))] for row in rows]
        dtype = torch.float64 if filling == NEVER else torch.int64
        return torch.tensor(full, dtype=dtype, device=self.stepper.device)


def _copy(leaf: object) -> object:
    return leaf.clone() if isinstance(leaf, Tensor) else leaf
