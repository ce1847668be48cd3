"""Ancestral sampling: sequences drawn token by token from the model's own distribution."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.search.hypotheses import Hypothesis
from fenchel.search.stepper import BOS, EOS, Stepper, step, steps_between_checks
from fenchel.search.validate import (
    ProbabilityCheck,
    check_positive,
    check_token_ids,
    clamp_probabilities,
    row_statistics,
)


@torch.no_grad()
def sample(
    stepper: Stepper,
    count: int = 1,
    *,
    max_length: int,
    generator: torch.Generator | None = None,
    bos: int = BOS,
    eos: int = EOS,
) -> list[tuple[Hypothesis, ...]]:
    """Draw `count` independent sequences y ~ p per sentence, token by token.

    Dense models are usually sampled from a truncated distribution (top-k, nucleus) because their
    tails are noise. A sparse model needs no truncation: tokens of probability zero are never
    drawn. Samples come in the order in which they were drawn, and may repeat. A sample that has not
    finished after `max_length` tokens is cut there; `finished` is then false, and its probability
    is that of the prefix.

    Each token costs one uniform number and one cumulative sum over the vocabulary in float64.

    >>> from fenchel import search
    >>> row = torch.tensor([0, 0, 0.5, 0.5, 0])
    >>> stepper = search.PrefixStepper([lambda prefix: row])
    >>> seed = torch.Generator().manual_seed(8)
    >>> drawn, = search.sample(stepper, 4, max_length=9, generator=seed)
    >>> [hypothesis.tokens for hypothesis in drawn]
    [(3, 3), (3,), (), ()]
    """
    check_positive(count=count, max_length=max_length)
    check_token_ids(bos=bos, eos=eos)
    shape, device = (stepper.batch_size, count), stepper.device
    tokens = torch.full(shape, bos, device=device)
    scores = torch.zeros(shape, dtype=torch.float64, device=device)
    finished = torch.zeros(shape, dtype=torch.bool, device=device)
    state, steps = stepper.start(count), []
    interval = steps_between_checks(device)
    check = ProbabilityCheck(device)
    for length in range(max_length + 1):
        probabilities, state = step(stepper, tokens, state, eos)
        check.add(row_statistics(probabilities), unused=finished)
        tokens, score = draw(probabilities, generator)
        is_eos = tokens == eos
        if length == max_length:
            score = score.masked_fill(~is_eos, 0.0)
        scores = torch.where(finished, scores, scores + score)
        finished = finished | is_eos
        tokens = tokens.masked_fill(finished, eos)
        steps.append(tokens)
        if length % interval == 0 and bool(finished.all()):
            break
    check.raise_if_invalid()
    return _hypotheses(torch.stack(steps, -1), scores, finished, max_length, eos)


def draw(probabilities: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Draw one token per row of probabilities (…, V), and return it with its log-probability.

    The token is the first whose cumulative probability exceeds a uniform number. Its cumulative
    probability then also exceeds that of the token before it, so its own is not zero.
    """
    probabilities = clamp_probabilities(probabilities)
    sums = probabilities.cumsum(-1)
    total = sums[..., -1:]
    uniform = torch.rand(total.shape, dtype=sums.dtype, device=sums.device, generator=generator)
    below = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    tokens = torch.searchsorted(sums, below, right=True)
    # A row of zeros or NaN has no such token; `ProbabilityCheck` or `Hypothesis` raises later.
    tokens = tokens.clamp(max=probabilities.shape[-1] - 1)
    return tokens.squeeze(-1), probabilities.gather(-1, tokens).squeeze(-1).log()


def _hypotheses(
    tokens: Tensor, scores: Tensor, finished: Tensor, max_length: int, eos: int
) -> list[tuple[Hypothesis, ...]]:
    lengths = (tokens != eos).sum(-1).clamp(max=max_length).tolist()
    rows = zip(tokens.tolist(), lengths, scores.tolist(), finished.tolist(), strict=True)
    return [
        tuple(
            Hypothesis.of(tuple(sequence[:length]), score, finished=ended)
            for sequence, length, score, ended in zip(*row, strict=True)
        )
        for row in rows
    ]
