"""Autocompletion: the tokens a model thinks possible at every step along a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import index

import torch
from torch import Tensor

from fenchel.errors import rule
from fenchel.search.labels import Symbols, labels, percent
from fenchel.search.largest import largest
from fenchel.search.sizes import marks, positive
from fenchel.search.soundness import Soundness, bounded, summarize
from fenchel.search.stepper import BOS, EOS, Stepper, step


@dataclass(frozen=True)
class CompletionStep:
    """One step: the token that was taken, and the most probable ones, best first.

    `support` is the number of tokens of non-zero probability; there can be more of them than
    `candidates`, and `token` need not be among them.
    """

    token: int
    probability: float
    candidates: tuple[tuple[int, float], ...]
    support: int

    @property
    def certain(self) -> bool:
        """Whether the model gives all probability to the token that was taken."""
        return self.support == 1 and self.probability > 0


@dataclass(frozen=True)
class Completion:
    """The steps along one sequence, its end included (figure 2 of Peters, Niculae, Martins, 2019)."""

    steps: tuple[CompletionStep, ...]

    def spans(self) -> tuple[tuple[CompletionStep, ...], ...]:
        """The steps, with runs of certain ones together: what could be completed at once."""
        numbered = enumerate(self.steps)
        runs = groupby(numbered, key=lambda pair: -1 if pair[1].certain else pair[0])
        return tuple(tuple(step for _, step in run) for _, run in runs)

    def text(self, symbols: Symbols, *, eos: int = EOS, end: str = "■") -> str:
        """A line a span: a run of certain tokens, or the candidates with the one taken in brackets."""
        name = labels(symbols)

        def shown(token: int) -> str:
            return end if token == eos else name(token)

        lines = []
        for span in self.spans():
            if span[0].certain:
                lines.append("→ " + " ".join(shown(step.token) for step in span))
                continue
            (step,) = span
            words = [
                f"[{shown(token)}] {percent(p)}"
                if token == step.token
                else f"{shown(token)} {percent(p)}"
                for token, p in step.candidates
            ]
            hidden = step.support - len(step.candidates)
            more = [f"and {hidden} more"] if hidden > 0 else []
            if step.token not in {token for token, _ in step.candidates}:
                more.append(f"[{shown(step.token)}] {percent(step.probability)}")
            lines.append("? " + "   ".join([*words, *more]))
        return "\n".join(lines)


@torch.no_grad()
def autocomplete(
    stepper: Stepper,
    sequences: Sequence[Sequence[int]],
    *,
    candidates: int = 5,
    bos: int = BOS,
    eos: int = EOS,
) -> list[Completion]:
    """What the model thinks possible at each step of one given sequence a sentence.

    The sequences (without the marks of begin and end) are fed to the model token by token: gold
    targets, or the tokens of an answer's `best`. Steps where one token has all the probability
    need no typing.

    >>> from fenchel import search
    >>> rows = torch.tensor([[0, 0, 0, 1.0, 0], [0, 0, 0, 0.25, 0.75], [0, 0, 1, 0, 0]])
    >>> stepper = search.PrefixStepper([lambda prefix: rows[min(len(prefix), 2)]])
    >>> completion, = search.autocomplete(stepper, [(3, 3)])
    >>> print(completion.text("··.ab"))
    → a
    ? b 75.0 %   [a] 25.0 %
    → ■
    """
    positive(candidates=candidates)
    marks(bos=bos, eos=eos)
    if len(sequences) != stepper.batch_size:
        raise rule(
            "one sequence a sentence", expected=f"{stepper.batch_size} of them", got=len(sequences)
        )
    given = [[index(token) for token in tokens] for tokens in sequences]
    longest = max(map(len, given), default=0) + 1
    padded = [[*tokens, *[eos] * (longest - len(tokens))] for tokens in given]
    targets = torch.tensor(padded, dtype=torch.int64, device=stepper.device).view(-1, longest)
    tokens = torch.full_like(targets[:, :1], bos)
    ends = torch.tensor([[len(of_row)] for of_row in given], device=stepper.device)
    state, steps, sound = stepper.start(1), [], Soundness(stepper.device)
    for length in range(longest):
        probabilities, state = step(stepper, tokens, state, eos)
        if not steps:
            _check_known(padded, probabilities.shape[-1])
        sound.look(summarize(probabilities), ends < length)
        tokens = targets[:, length : length + 1]
        steps.append(_step(probabilities.squeeze(1), tokens, candidates))
    sound.check()
    rows = [torch.stack(parts, 1).tolist() for parts in zip(*steps, strict=True)]
    return [
        Completion(
            tuple(_completed(*step) for step in list(zip(*of_row, strict=True))[: length + 1])
        )
        for length, *of_row in zip(map(len, given), padded, *rows, strict=True)
    ]


def _check_known(sequences: list[list[int]], size: int) -> None:
    """Refuse tokens outside the vocabulary, which a GPU would answer with an abort."""
    outside = {token for tokens in sequences for token in tokens if not 0 <= token < size}
    if outside:
        expected, got = f"tokens from 0 to {size - 1}", f"{sorted(outside)}"
        raise rule("sequences are of the model's tokens", expected=expected, got=got)


def _step(probabilities: Tensor, tokens: Tensor, candidates: int) -> tuple[Tensor, ...]:
    """Of rows (B, V): the probability of the tokens, the candidates, theirs, and the support."""
    count = min(candidates, probabilities.shape[-1])
    best, places = largest(probabilities, count)
    taken = probabilities.gather(-1, tokens).squeeze(-1)
    return bounded(taken), places, bounded(best), (probabilities > 0).sum(-1)


def _completed(
    token: int, probability: float, places: list[int], best: list[float], support: int
) -> CompletionStep:
    possible = tuple((place, p) for place, p in zip(places, best, strict=True) if p > 0)
    return CompletionStep(token, probability, possible, support)
