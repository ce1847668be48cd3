"""Small sequence models, and brute-force searches to compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

import fenchel

BOS, EOS = 1, 2


@dataclass(frozen=True)
class RandomModel:
    """A random sparse distribution after every prefix; sequences have at most `depth` tokens.

    `levels` rounds probabilities to multiples of 1/levels, which makes ties frequent.
    """

    seed: int
    size: int = 6
    depth: int = 4
    support: int = 3
    levels: int | None = None
    dtype: torch.dtype = torch.float64

    def __call__(self, prefix: tuple[int, ...]) -> Tensor:
        probabilities = torch.zeros(self.size, dtype=self.dtype)
        if len(prefix) >= self.depth:
            probabilities[EOS] = 1
            return probabilities
        generator = torch.Generator().manual_seed(hash((self.seed, prefix)) % 2**31)
        count = int(torch.randint(1, self.support + 1, (), generator=generator))
        tokens = torch.randperm(self.size, generator=generator)[:count]
        if self.levels is None:
            weights = torch.rand(count, generator=generator, dtype=torch.float64) + 1e-3
        else:
            weights = torch.bincount(
                torch.randint(0, count, (self.levels,), generator=generator), minlength=count
            ).double()
        probabilities[tokens] = (weights / weights.sum()).to(self.dtype)
        return probabilities


def all_sequences(model, max_length: int) -> tuple[dict[tuple[int, ...], float], float]:
    """Return the probability of every sequence up to `max_length`, and of the largest cut prefix."""
    found: dict[tuple[int, ...], float] = {}
    cut = 0.0
    waiting: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while waiting:
        prefix, mass = waiting.pop()
        for token, p in enumerate(model(prefix).tolist()):
            if p == 0:
                continue
            if token == EOS:
                found[prefix] = mass * p
            elif len(prefix) == max_length:
                cut = max(cut, mass * p)
            else:
                waiting.append(((*prefix, token), mass * p))
    return found, cut


def plain_beam_search(model, width: int, answers: int, max_length: int):
    """A direct beam search: return the finished sequences, the prefixes and the largest dropped."""
    prefixes: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    finished: list[tuple[tuple[int, ...], float]] = []
    dropped = [-math.inf]
    for length in range(max_length + 1):
        continued = []
        for prefix, score in prefixes:
            of_prefix = [
                ((*prefix, token), score + math.log(p), p)
                for token, p in enumerate(model(prefix).tolist())
                if p > 0
            ]
            of_prefix.sort(key=lambda entry: -entry[2])
            finished += [(prefix, s) for y, s, _ in of_prefix if y[-1] == EOS]
            continued += [(y, s) for y, s, _ in of_prefix if y[-1] != EOS]
        finished.sort(key=lambda entry: -entry[1])
        dropped += [score for _, score in finished[answers:]]
        del finished[answers:]
        continued.sort(key=lambda entry: -entry[1])
        bound = finished[-1][1] if len(finished) == answers else -math.inf
        kept = [entry for entry in continued[:width] if entry[1] > bound]
        if length == max_length:
            dropped += [score for _, score in continued]
            break
        dropped += [score for _, score in continued[len(kept) :]]
        prefixes = kept
        if not kept:
            break
    return finished, prefixes, max(dropped)


class RecurrentStepper:
    """A recurrent network with a sparse output and a nested state."""

    def __init__(self, inputs: Tensor, *, size: int = 12, alpha: float = 1.5, seed: int = 0):
        generator = torch.Generator().manual_seed(seed)

        def weight(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64).to(inputs)

        hidden = inputs.shape[-1]
        self.inputs, self.alpha = inputs, alpha
        self.embedding, self.recurrent = weight(size, hidden), 0.7 * weight(hidden, hidden)
        self.output, self.bias = weight(hidden, size), weight(size)
        self.seed, self.size, self.calls = seed, size, []

    @property
    def batch_size(self) -> int:
        return len(self.inputs)

    @property
    def device(self) -> torch.device:
        return self.inputs.device

    def start(self, width: int):
        hidden = self.inputs.unsqueeze(1).repeat(1, width, 1)
        return {"layers": (hidden, [torch.zeros_like(hidden[..., 0])]), "nothing": None}

    def __call__(self, tokens: Tensor, state) -> tuple[Tensor, object]:
        self.calls.append(tuple(tokens.shape))
        hidden, [count] = state["layers"]
        mixed = (hidden.unsqueeze(-1) * self.recurrent).sum(-2)  # no shape-dependent rounding
        hidden = torch.tanh(mixed + self.embedding[tokens] + self.inputs.unsqueeze(1))
        count = count + 1
        scores = (hidden.unsqueeze(-1) * self.output).sum(-2) + self.bias
        scores[..., EOS] += 0.5 * count
        new = {"layers": (hidden, [count]), "nothing": None}
        return fenchel.entmax(scores, self.alpha), new

    def select(self, rows: Tensor) -> RecurrentStepper:
        chosen = RecurrentStepper(
            self.inputs[rows], size=self.size, alpha=self.alpha, seed=self.seed
        )
        chosen.calls = self.calls
        return chosen

    def of_prefix(self, row: int):
        """Return the model of one sentence as a function of prefixes, each computed on its own."""
        alone = self.select(torch.tensor([row], device=self.device))

        @cache
        def after(prefix: tuple[int, ...]):
            state = after(prefix[:-1])[1] if prefix else alone.start(1)
            token = prefix[-1] if prefix else BOS
            return alone(torch.full((1, 1), token, device=self.device), state)

        return lambda prefix: after(tuple(prefix))[0][0, 0].cpu()
