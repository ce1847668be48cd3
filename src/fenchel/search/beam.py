"""Batched beam search with an upper bound on the probability of everything that it drops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fenchel.search.hypotheses import Answer, Hypothesis
from fenchel.search.stepper import BOS, EOS, Stepper, reorder, step, steps_between_checks, take_rows
from fenchel.search.topk import Candidates, stable_sort
from fenchel.search.validate import (
    ProbabilityCheck,
    check_positive,
    check_token_ids,
    clamp_probabilities,
)

NEG_INF = float("-inf")


@torch.no_grad()
def beam_search(
    stepper: Stepper,
    *,
    width: int = 5,
    max_length: int,
    answers: int | None = None,
    bos: int = BOS,
    eos: int = EOS,
) -> list[Answer]:
    r"""Find argmax_y p(y) = ∏ₜ p(yₜ | y₁…yₜ₋₁) over sequences, keeping `width` prefixes per sentence.

    At every step each prefix is extended by every token. Extensions by `eos` are finished and
    compete for the best `answers` (default: `width`); of the others the `width` most probable
    are kept. Prefixes of probability zero are discarded, so a beam may hold fewer. A prefix that
    is not more probable than the last of the best `answers` is pruned, and the search of a
    sentence stops when it has no prefixes left. With `answers=1` it stops as soon as the best
    sequence is known for certain.

    A sequence has at most `max_length` tokens, not counting `eos`. If none has finished by then,
    the prefixes are returned with `finished` false. `Answer.dropped` is exact: the largest
    probability of a prefix or sequence that was dropped, pruned, or cut by the length limit.

    Each step is one call of the stepper and a few operations on (sentences, width · (width + 2))
    candidates. Ties are broken by prefix, then by token, so that the answer for a sentence does
    not depend on the rest of the batch. Log-probabilities are summed in float64.

    >>> from fenchel import search
    >>> table = torch.tensor([[0, 0, 0.0, 0.6, 0.4], [0, 0, 0.9, 0.1, 0], [0, 0, 1.0, 0, 0]])
    >>> def probabilities(prefix):  # of the tokens 0 … 4, after a prefix of tokens
    ...     return table[min(len(prefix), 2)]
    >>> answer, = search.beam_search(search.PrefixStepper([probabilities]), max_length=4)
    >>> [(h.tokens, round(h.probability, 3)) for h in answer.hypotheses]
    [((3,), 0.54), ((4,), 0.36), ((3, 3), 0.06), ((4, 3), 0.04)]
    >>> answer.dropped, answer.certified, answer.complete
    (0.0, True, True)
    """
    answers = width if answers is None else answers
    check_positive(width=width, max_length=max_length, answers=answers)
    check_token_ids(bos=bos, eos=eos)
    backpointers = Backpointers(stepper, width, max_length)
    beam = Beam.start(stepper, width, answers)
    tokens = torch.full_like(beam.scores, bos, dtype=torch.int64)
    state = stepper.start(width)
    finished_beams: list[Beam] = []
    check = ProbabilityCheck(stepper.device)
    interval = steps_between_checks(stepper.device)
    for length in range(max_length):
        probabilities, state = step(stepper, tokens, state, eos)
        candidates = Candidates.of(probabilities, eos)
        check.add(candidates.statistics, unused=beam.scores == NEG_INF)
        beam, tokens, parents = beam.advance(candidates, eos, length)
        backpointers.append(beam.rows, tokens, parents)
        if width > 1:
            state = reorder(state, parents + beam.first_slots)
        if (length + 1) % interval:
            continue
        check.raise_if_invalid()
        active = beam.active().nonzero().squeeze(-1)
        if not len(active):
            return backpointers.answers([*finished_beams, beam])
        select = getattr(stepper, "select", None)
        if 2 * len(active) <= len(beam.rows) and select is not None:
            finished_beams.append(beam)
            stepper = select(active)
            beam, tokens, state = beam.take(active), tokens[active], take_rows(state, active)
    probabilities, state = step(stepper, tokens, state, eos)
    candidates = Candidates.of(probabilities, eos)
    check.add(candidates.statistics, unused=beam.scores == NEG_INF)
    check.raise_if_invalid()
    return backpointers.answers([*finished_beams, beam.close(candidates, eos, max_length)])


@dataclass(frozen=True)
class Beam:
    """Log-probabilities of the prefixes and the finished sequences of B sentences, best first.

    An empty slot has the log-probability −inf. `ends` encodes where a finished sequence ended:
    length · width + slot.
    """

    rows: Tensor  # (B,) the indices of the sentences in the whole batch
    scores: Tensor  # (B, K) of the prefixes
    finished: Tensor  # (B, N) of the finished sequences
    ends: Tensor  # (B, N)
    dropped: Tensor  # (B,) the largest log-probability dropped so far
    first_slots: Tensor  # (B, 1) the index of a sentence's first prefix among all B · K

    @classmethod
    def start(cls, stepper: Stepper, width: int, answers: int) -> Beam:
        """Return the beam with one empty prefix per sentence, of probability 1."""
        size, device = stepper.batch_size, stepper.device
        rows = torch.arange(size, device=device)
        empty = torch.full((size, answers), NEG_INF, dtype=torch.float64, device=device)
        scores = empty[:, :1].repeat(1, width)
        scores[:, 0] = 0.0
        ends = torch.zeros_like(empty, dtype=torch.int64)
        return cls(rows, scores, empty, ends, empty[:, 0], rows.unsqueeze(-1) * width)

    def advance(self, candidates: Candidates, eos: int, length: int) -> tuple[Beam, Tensor, Tensor]:
        """Extend the prefixes by one token; return the new beam, the tokens and the parent slots."""
        width = self.scores.shape[-1]
        ended, best, tokens, parents = _extend(self.scores, candidates, eos)
        beam = self._add_finished(ended, length)
        kept = best[:, :width] > beam.finished[:, -1:]
        best_dropped = best.gather(-1, kept.sum(-1, keepdim=True)).squeeze(-1)
        scores = best[:, :width].masked_fill(~kept, NEG_INF)
        beam = replace(beam, scores=scores, dropped=torch.maximum(beam.dropped, best_dropped))
        return beam, tokens[:, :width], parents[:, :width]

    def close(self, candidates: Candidates, eos: int, length: int) -> Beam:
        """Finish prefixes at the length limit; the prefixes stay, all extensions are dropped."""
        ended, best, _, _ = _extend(self.scores, candidates, eos)
        beam = self._add_finished(ended, length)
        return replace(beam, dropped=torch.maximum(beam.dropped, best[:, 0]))

    def take(self, rows: Tensor) -> Beam:
        """Return the beam of the sentences `rows` only."""
        chosen = {name: value[rows] for name, value in vars(self).items()}
        return Beam(**{**chosen, "first_slots": self.first_slots[: len(rows)]})

    def active(self) -> Tensor:
        """Return (B,) whether a sentence still has prefixes; they are sorted, the first decides."""
        return self.scores[:, 0] > NEG_INF

    def _add_finished(self, ended: Tensor, length: int) -> Beam:
        """Add the prefixes extended by `eos`, with log-probabilities `ended` (B, K)."""
        count, width = self.finished.shape[-1], self.scores.shape[-1]
        slots = torch.arange(length * width, (length + 1) * width, device=self.scores.device)
        scores = torch.cat((self.finished, ended), -1)
        ends = torch.cat((self.ends, slots.expand_as(self.scores)), -1)
        scores, order = stable_sort(scores)
        return replace(
            self,
            finished=scores[:, :count],
            ends=ends.gather(-1, order[:, :count]),
            dropped=torch.maximum(self.dropped, scores[:, count]),
        )


def _extend(scores: Tensor, candidates: Candidates, eos: int) -> tuple[Tensor, ...]:
    """Extend prefixes with log-probabilities `scores` (B, K) by their candidates.

    Returns the log-probabilities (B, K) of the extensions by `eos`, and of the best K + 1 other
    extensions the log-probabilities, the tokens and the slots of their prefixes.
    """
    keep, count = scores.shape[-1] + 1, candidates.tokens.shape[-1]
    joint = scores.unsqueeze(-1) + clamp_probabilities(candidates.probabilities).log()
    others = joint[..., 1:].masked_fill(candidates.tokens == eos, NEG_INF)
    best, order = stable_sort(others.flatten(1))
    order = order[:, :keep]
    tokens = candidates.tokens.flatten(1).gather(-1, order)
    return joint[..., 0], best[:, :keep], tokens, order // count


class Backpointers:
    """The token and the parent slot of every prefix at every step, to recover the sequences."""

    def __init__(self, stepper: Stepper, width: int, max_length: int) -> None:
        shape = (max_length, stepper.batch_size, width)
        self.steps = torch.zeros(shape, dtype=torch.int64, device=stepper.device)
        self.length, self.width = 0, width

    def append(self, rows: Tensor, tokens: Tensor, parents: Tensor) -> None:
        """Add a step of the sentences `rows`."""
        self.steps[self.length].index_copy_(0, rows, torch.add(parents, tokens, alpha=self.width))
        self.length += 1

    def answers(self, beams: list[Beam]) -> list[Answer]:
        """Return the answers for all sentences; later beams override earlier ones."""
        count = beams[0].finished.shape[-1]
        size = self.steps.shape[1]
        finished = np.full((size, count), -np.inf)
        ends = np.zeros((size, count), dtype=np.int64)
        prefixes = np.full((size, self.width), -np.inf)
        dropped = np.full(size, -np.inf)
        for beam in beams:
            rows = beam.rows.cpu().numpy()
            finished[rows], ends[rows] = beam.finished.cpu().numpy(), beam.ends.cpu().numpy()
            prefixes[rows], dropped[rows] = beam.scores.cpu().numpy(), beam.dropped.cpu().numpy()
        unfinished = (finished == -np.inf).all(-1)
        last_slots = np.broadcast_to(
            self.length * self.width + np.arange(self.width), prefixes.shape
        )
        sequences = self._sequences(ends)
        cut = self._sequences(last_slots) if unfinished.any() else []
        answers = []
        for row in range(size):
            scores = prefixes[row] if unfinished[row] else finished[row]
            tokens = cut[row] if unfinished[row] else sequences[row]
            hypotheses = [
                Hypothesis.of(sequence, float(score), finished=not unfinished[row])
                for sequence, score in zip(tokens, scores, strict=True)
                if score != -np.inf
            ]
            answers.append(Answer.of(hypotheses, float(dropped[row])))
        return answers

    def _sequences(self, ends: Any) -> list[list[tuple[int, ...]]]:
        """Follow the backpointers from `ends` (B, N), encoded as in `Beam`, to the tokens."""
        steps = self.steps[: self.length].cpu().numpy()
        lengths: Any = ends // self.width
        slots = ends % self.width
        rows = np.arange(len(ends))[:, None]
        tokens: Any = np.zeros((*ends.shape, self.length), dtype=np.int64)
        for length in range(self.length - 1, -1, -1):
            inside = length < lengths
            token, parent = np.divmod(steps[length][rows, slots], self.width)
            tokens[..., length] = token
            slots = np.where(inside, parent, slots)
        return [
            [tuple(path[:length]) for path, length in zip(*of_row, strict=True)]
            for of_row in zip(tokens.tolist(), lengths.tolist(), strict=True)
        ]
