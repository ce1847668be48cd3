"""Sampling from a model as it is: a token of probability zero is never drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.search.answers import Hypothesis
from fenchel.search.sizes import marks, positive
from fenchel.search.soundness import Soundness, bounded, summarize
from fenchel.search.stepper import BOS, EOS, Stepper, step, steps_between_checks


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
    """Draw `count` independent sequences y ~ p a sentence, one token after another.

    Dense models are usually sampled from a truncated distribution (top-k, nucleus), because their
    tails are noise. A sparse model has no tail: it is sampled as it was trained. Sequences come
    in the order in which they were drawn, and can repeat; one that has not ended after
    `max_length` tokens is cut there, `finished` is false, and its probability that of the prefix.

    One uniform number a token, and one cumulative sum over the vocabulary in float64.

    >>> from fenchel import search
    >>> row = torch.tensor([0, 0, 0.5, 0.5, 0])
    >>> stepper = search.PrefixStepper([lambda prefix: row])
    >>> seed = torch.Generator().manual_seed(8)
    >>> drawn, = search.sample(stepper, 4, max_length=9, generator=seed)
    >>> [hypothesis.tokens for hypothesis in drawn]
    [(3, 3), (3,), (), ()]
    """
    positive(count=count, max_length=max_length)
    marks(bos=bos, eos=eos)
    shape, device = (stepper.batch_size, count), stepper.device
    tokens = torch.full(shape, bos, device=device)
    scores = torch.zeros(shape, dtype=torch.float64, device=device)
    ended = torch.zeros(shape, dtype=torch.bool, device=device)
    state, steps = stepper.start(count), []
    pause = steps_between_checks(device)
    sound = Soundness(device)
    for length in range(max_length + 1):
        probabilities, state = step(stepper, tokens, state, eos)
        sound.look(summarize(probabilities), ended)
        tokens, score = draw(probabilities, generator)
        over = tokens == eos
        if length == max_length:
            score = score.masked_fill(~over, 0.0)
        scores = torch.where(ended, scores, scores + score)
        ended = ended | over
        tokens = tokens.masked_fill(ended, eos)
        steps.append(tokens)
        if length % pause == 0 and bool(ended.all()):
            break
    sound.check()
    return _hypotheses(torch.stack(steps, -1), scores, ended, max_length, eos)


def draw(probabilities: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """One token a row of probabilities (…, V), with its log-probability.

    The first whose cumulative probability exceeds a uniform number: it exceeds that of its
    predecessor too, so its own probability is not zero.
    """
    probabilities = bounded(probabilities)
    sums = probabilities.cumsum(-1)
    total = sums[..., -1:]
    uniform = torch.rand(total.shape, dtype=sums.dtype, device=sums.device, generator=generator)
    below = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    tokens = torch.searchsorted(sums, below, right=True)
    tokens = tokens.clamp(max=probabilities.shape[-1] - 1)  # a row of zeros or NaN is told later
    return tokens.squeeze(-1), probabilities.gather(-1, tokens).squeeze(-1).log()


def _hypotheses(
    tokens: Tensor, scores: Tensor, ended: Tensor, max_length: int, eos: int
) -> list[tuple[Hypothesis, ...]]:
    lengths = (tokens != eos).sum(-1).clamp(max=max_length).tolist()
    return [
        tuple(
            Hypothesis.of(tuple(path[:length]), score, finished=over)
            for path, length, score, over in zip(*of_row, strict=True)
        )
        for of_row in zip(tokens.tolist(), lengths, scores.tolist(), ended.tolist(), strict=True)
    ]
