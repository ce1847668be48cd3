"""Training speed: every model takes the same batches, a few at a time, in turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import torch

from fenchel.data import Codec, Encoded, LengthBuckets
from fenchel.data.batches import Batch
from fenchel.models.seq2seq import Seq2Seq
from fenchel.recipes import Recipe
from fenchel.recipes.figures import best_device
from fenchel.recipes.reading import Splits
from fenchel.recipes.reproductions.table import Experiment, TimedTable
from fenchel.recipes.reproductions.training import Figure, Occasion, configured
from fenchel.recipes.running import codec_of

ROUNDS, STEPS, WARM_UP = 15, 10, 3
QUICK_ROUNDS, QUICK_STEPS = 2, 1


def timed_figures(
    table: TimedTable, experiments: Sequence[Experiment], data: Splits, occasion: Occasion
) -> list[Figure]:
    """Target symbols a second of training, and the ratios to the first experiment.

    All are medians over rounds in which every model takes its turn.
    """
    recipes = {each.name: configured(table, each, occasion) for each in experiments}
    first = next(iter(recipes.values()))
    codec = codec_of(first, data.train)
    contenders = {name: _Contender(made, codec) for name, made in recipes.items()}
    rounds, steps = (QUICK_ROUNDS, QUICK_STEPS) if occasion.quick else (ROUNDS, STEPS)
    encoded = Encoded.of(data.train, codec).to(best_device())
    order = LengthBuckets(encoded, first.training.batch_size, seed=first.training.seed).batches()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(WARM_UP + rounds):
        places = [order[(turn * steps + k) % len(order)] for k in range(steps)]
        batches = [encoded.batch(place) for place in places]
        for name, contender in contenders.items():
            speed = contender.symbols_a_second(batches)
            if turn >= WARM_UP:
                times[name].append(speed)
    return [*_speeds(experiments, times), *_ratios(experiments, times)]


def _speeds(experiments: Sequence[Experiment], times: dict[str, list[float]]) -> list[Figure]:
    return [
        (f"{each.name}: symbols a second", median(times[each.name]), each.paper.get("words"))
        for each in experiments
    ]


def _ratios(experiments: Sequence[Experiment], times: dict[str, list[float]]) -> list[Figure]:
    """How fast the others are beside the first, round by round."""
    first, *others = experiments
    figures: list[Figure] = []
    for each in others:
        rounds = zip(times[each.name], times[first.name], strict=True)
        known = "words" in each.paper and "words" in first.paper
        paper = each.paper["words"] / first.paper["words"] if known else None
        ours = median(other / base for other, base in rounds)
        figures.append((f"{each.name} / {first.name}: speed", ours, paper))
    return figures


class _Contender:
    """A model that trains on what it is given."""

    def __init__(self, recipe: Recipe, codec: Codec) -> None:
        sizes = {
            "source_size": len(codec.source_vocabulary),
            "target_size": len(codec.target_vocabulary),
        }
        torch.manual_seed(recipe.training.seed)
        self.device, self.config = best_device(), recipe.training
        self.model = Seq2Seq(replace(recipe.model, **sizes)).to(self.device).train()
        self.optimizer = torch.optim.Adam(self.model.parameters(), recipe.training.learning_rate)

    def symbols_a_second(self, batches: Sequence[Batch]) -> float:
        self._wait()
        begin = time.perf_counter()
        tokens = [self._step(batch) for batch in batches]
        self._wait()
        return float(torch.stack(tokens).sum()) / (time.perf_counter() - begin)

    def _step(self, batch: Batch) -> torch.Tensor:
        precise = self.config.precision == "32-true"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=not precise):
            loss, statistics = self.model.loss(batch, describe=False)
        self.optimizer.zero_grad(set_to_none=True)
        (loss / statistics.tokens).backward()
        if self.config.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        return statistics.tokens

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
