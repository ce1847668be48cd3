"""Autocompletion: the tokens that a model considers possible at each step of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import index

import torch
from torch import Tensor

from fenchel.errors import FenchelError
from fenchel.search.labels import Symbols, labels, percent
from fenchel.search.stepper import BOS, EOS, Stepper, step
from fenchel.search.topk import stable_topk
from fenchel.search.validate import (
    ProbabilityCheck,
    check_positive,
    check_token_ids,
    clamp_probabilities,
    row_statistics,
)


@dataclass(frozen=True)
class CompletionStep:
    """The token taken at one step, and the most probable candidates, best first.

    `support` is the number of tokens of non-zero probability. It may exceed the number of
    `candidates`, and `token` need not be one of them.
    """

    token: int
    probability: float
    candidates: tuple[tuple[int, float], ...]
    support: int

    @property
    def certain(self) -> bool:
        """Whether the model gives all probability to the token taken."""
        return self.support == 1 and self.probability > 0


@dataclass(frozen=True)
class Completion:
    """The steps of one sequence, including its end (figure 2 of Peters, Niculae, Martins, 2019)."""

    steps: tuple[CompletionStep, ...]

    def spans(self) -> tuple[tuple[CompletionStep, ...], ...]:
        """Group consecutive certain steps, which could be completed at once."""
        numbered = enumerate(self.steps)
        runs = groupby(numbered, key=lambda pair: -1 if pair[1].certain else pair[0])
        return tuple(tuple(step for _, step in run) for _, run in runs)

    def text(self, symbols: Symbols, *, eos: int = EOS, end: str = "■") -> str:
        """Format the completion for a terminal, one line per span.

        A line lists either certain tokens, or the candidates of one step with the token taken in
        brackets.
        """
        label = labels(symbols)

        def shown(token: int) -> str:
            return end if token == eos else label(token)

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
    """Return the candidates of the model at each step of a given sequence.

    Args:
        stepper: The model.
        sequences: One sequence per sentence, without begin and end tokens: a reference, or the
            tokens of an answer's `best`. The model is fed these tokens.
        candidates: The largest number of candidates returned per step.
        bos: The begin token.
        eos: The end token.

    >>> from fenchel import search
    >>> rows = torch.tensor([[0, 0, 0, 1.0, 0], [0, 0, 0, 0.25, 0.75], [0, 0, 1, 0, 0]])
    >>> stepper = search.PrefixStepper([lambda prefix: rows[min(len(prefix), 2)]])
    >>> completion, = search.autocomplete(stepper, [(3, 3)])
    >>> print(completion.text("··.ab"))
    → a
    ? b 75.0 %   [a] 25.0 %
    → ■
    """
    check_positive(candidates=candidates)
    check_token_ids(bos=bos, eos=eos)
    if len(sequences) != stepper.batch_size:
        raise FenchelError(
            f"sequences must contain one sequence per sentence ({stepper.batch_size}), "
            f"got {len(sequences)}"
        )
    unpadded = [[index(token) for token in tokens] for tokens in sequences]
    longest = max(map(len, unpadded), default=0) + 1
    padded = [[*tokens, *[eos] * (longest - len(tokens))] for tokens in unpadded]
    targets = torch.tensor(padded, dtype=torch.int64, device=stepper.device).view(-1, longest)
    tokens = torch.full_like(targets[:, :1], bos)
    lengths = torch.tensor([[len(row)] for row in unpadded], device=stepper.device)
    state, steps, check = stepper.start(1), [], ProbabilityCheck(stepper.device)
    for length in range(longest):
        probabilities, state = step(stepper, tokens, state, eos)
        if not steps:
            _check_vocabulary(padded, probabilities.shape[-1])
        check.add(row_statistics(probabilities), unused=lengths < length)
        tokens = targets[:, length : length + 1]
        steps.append(_step(probabilities.squeeze(1), tokens, candidates))
    check.raise_if_invalid()
    rows = [torch.stack(parts, 1).tolist() for parts in zip(*steps, strict=True)]
    return [
        Completion(
            tuple(_completion_step(*step) for step in list(zip(*row, strict=True))[: length + 1])
        )
        for length, *row in zip(map(len, unpadded), padded, *rows, strict=True)
    ]


def _check_vocabulary(sequences: list[list[int]], size: int) -> None:
    """Raise for tokens outside the vocabulary, on which a CUDA kernel would abort the process."""
    outside = {token for tokens in sequences for token in tokens if not 0 <= token < size}
    if outside:
        raise FenchelError(
            f"sequences must contain tokens in [0, {size - 1}], got {sorted(outside)}"
        )


def _step(probabilities: Tensor, tokens: Tensor, candidates: int) -> tuple[Tensor, ...]:
    """Return the probabilities of `tokens`, the candidates, theirs, and the support of rows (B, V)."""
    count = min(candidates, probabilities.shape[-1])
    best, indices = stable_topk(probabilities, count)
    taken = probabilities.gather(-1, tokens).squeeze(-1)
    support = (probabilities > 0).sum(-1)
    return clamp_probabilities(taken), indices, clamp_probabilities(best), support


def _completion_step(
    token: int, probability: float, indices: list[int], best: list[float], support: int
) -> CompletionStep:
    candidates = tuple((index, p) for index, p in zip(indices, best, strict=True) if p > 0)
    return CompletionStep(token, probability, candidates, support)
