"""Beam search for many sentences at once, with a bound on everything that it drops."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fenchel.search.answers import Answer
from fenchel.search.candidates import Candidates
from fenchel.search.history import History
from fenchel.search.largest import in_order
from fenchel.search.sizes import marks, positive
from fenchel.search.soundness import Soundness, bounded
from fenchel.search.stepper import BOS, EOS, Stepper, reorder, step, steps_between_checks, take_rows

NEVER = float("-inf")


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
    r"""Find argmax_y p(y) = ∏ₜ p(yₜ | y₁…yₜ₋₁) over sequences, keeping `width` prefixes a sentence.

    At every step each prefix is continued by every token. Continuations by `eos` are finished
    and compete for the best `answers` (as many as `width`, unless given); of the others the
    `width` most probable remain. A prefix of probability zero is not a prefix: a beam may hold
    fewer. A prefix that cannot become more probable than the last of the finished is dropped,
    and a sentence with no prefix left is done: `answers=1` stops as soon as the best is certain.

    An answer has at most `max_length` tokens, `eos` not counted. If none has ended by then, the
    prefixes are returned, with `finished` false. `Answer.dropped` is exact: the largest
    probability of a prefix or sequence that was dropped on the way or cut by the length limit.

    Each step is one call of the stepper and a few operations on (sentences, width · (width + 2))
    candidates. Equal probabilities are ordered by prefix, then by token, so that a sentence's
    answer does not depend on the others in the batch. Log-probabilities are summed in float64.

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
    positive(width=width, max_length=max_length, answers=answers)
    marks(bos=bos, eos=eos)
    history = History(stepper, width, max_length)
    beam = Beam.start(stepper, width, answers)
    tokens = torch.full_like(beam.scores, bos, dtype=torch.int64)
    state = stepper.start(width)
    retired: list[Beam] = []
    sound = Soundness(stepper.device)
    pause = steps_between_checks(stepper.device)
    for length in range(max_length):
        probabilities, state = step(stepper, tokens, state, eos)
        candidates = Candidates.of(probabilities, eos)
        sound.look(candidates.summaries, beam.scores == NEVER)
        beam, tokens, parents = beam.advance(candidates, eos, length)
        history.append(beam.rows, tokens, parents)
        if width > 1:
            state = reorder(state, parents + beam.first_slots)
        if (length + 1) % pause:
            continue
        sound.check()
        alive = beam.alive().nonzero().squeeze(-1)
        if not len(alive):
            return history.answers([*retired, beam])
        select = getattr(stepper, "select", None)
        if 2 * len(alive) <= len(beam.rows) and select is not None:
            retired.append(beam)
            stepper = select(alive)
            beam, tokens, state = beam.take(alive), tokens[alive], take_rows(state, alive)
    probabilities, state = step(stepper, tokens, state, eos)
    candidates = Candidates.of(probabilities, eos)
    sound.look(candidates.summaries, beam.scores == NEVER)
    sound.check()
    return history.answers([*retired, beam.close(candidates, eos, max_length)])


@dataclass(frozen=True)
class Beam:
    """The prefixes and the finished sequences of some sentences, best first, by log-probability.

    An empty place has the log-probability −inf. `ends` says where a finished sequence stood
    when it ended: its length times the width, plus its place.
    """

    rows: Tensor  # (B,) which sentences these are
    scores: Tensor  # (B, K) of the prefixes
    finished: Tensor  # (B, N) of the finished sequences
    ends: Tensor  # (B, N)
    dropped: Tensor  # (B,) the largest that was dropped so far
    first_slots: Tensor  # (B, 1) where the prefixes of a sentence begin, counted over (B, K)

    @classmethod
    def start(cls, stepper: Stepper, width: int, answers: int) -> Beam:
        """One empty prefix a sentence, of probability 1."""
        size, device = stepper.batch_size, stepper.device
        rows = torch.arange(size, device=device)
        empty = torch.full((size, answers), NEVER, dtype=torch.float64, device=device)
        scores = empty[:, :1].repeat(1, width)
        scores[:, 0] = 0.0
        ends = torch.zeros_like(empty, dtype=torch.int64)
        return cls(rows, scores, empty, ends, empty[:, 0], rows.unsqueeze(-1) * width)

    def advance(self, candidates: Candidates, eos: int, length: int) -> tuple[Beam, Tensor, Tensor]:
        """The beam after one more token, these tokens, and the places their prefixes stood at."""
        width = self.scores.shape[-1]
        ended, best, tokens, parents = _continuations(self.scores, candidates, eos)
        beam = self._finish(ended, length)
        stays = best[:, :width] > beam.finished[:, -1:]
        lost = best.gather(-1, stays.sum(-1, keepdim=True)).squeeze(-1)
        scores = best[:, :width].masked_fill(~stays, NEVER)
        beam = replace(beam, scores=scores, dropped=torch.maximum(beam.dropped, lost))
        return beam, tokens[:, :width], parents[:, :width]

    def close(self, candidates: Candidates, eos: int, length: int) -> Beam:
        """The beam whose prefixes may end but not go on; it keeps them as they are."""
        ended, best, _, _ = _continuations(self.scores, candidates, eos)
        beam = self._finish(ended, length)
        return replace(beam, dropped=torch.maximum(beam.dropped, best[:, 0]))

    def take(self, rows: Tensor) -> Beam:
        """The beam of some of its sentences."""
        chosen = {name: value[rows] for name, value in vars(self).items()}
        return Beam(**{**chosen, "first_slots": self.first_slots[: len(rows)]})

    def alive(self) -> Tensor:
        """(B,) whether a sentence still has prefixes; they are in order, so the first one tells."""
        return self.scores[:, 0] > NEVER

    def _finish(self, ended: Tensor, length: int) -> Beam:
        """Let the prefixes end that can; with `eos` they have these log-probabilities (B, K)."""
        count, width = self.finished.shape[-1], self.scores.shape[-1]
        slots = torch.arange(length * width, (length + 1) * width, device=self.scores.device)
        scores = torch.cat((self.finished, ended), -1)
        ends = torch.cat((self.ends, slots.expand_as(self.scores)), -1)
        scores, order = in_order(scores)
        return replace(
            self,
            finished=scores[:, :count],
            ends=ends.gather(-1, order[:, :count]),
            dropped=torch.maximum(self.dropped, scores[:, count]),
        )


def _continuations(scores: Tensor, candidates: Candidates, eos: int) -> tuple[Tensor, ...]:
    """The log-probabilities (B, K) of continuations by `eos`, and the best K + 1 of all others.

    Of these: log-probability, token, place of the prefix.
    """
    keep, count = scores.shape[-1] + 1, candidates.tokens.shape[-1]
    joint = scores.unsqueeze(-1) + bounded(candidates.probabilities).log()
    others = joint[..., 1:].masked_fill(candidates.tokens == eos, NEVER)
    best, order = in_order(others.flatten(1))
    order = order[:, :keep]
    tokens = candidates.tokens.flatten(1).gather(-1, order)
    return joint[..., 0], best[:, :keep], tokens, order // count
