"""Training speed: every model takes the same batches, a few at a time, in turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch
from torch import Tensor

from fenchel.data import Codec, Encoded, LengthBuckets
from fenchel.data.encoded import Batch
from fenchel.models.seq2seq import Seq2Seq
from fenchel.recipes import Recipe
from fenchel.recipes.figures import best_device
from fenchel.recipes.reading import Splits
from fenchel.recipes.reproductions.rows import Finding
from fenchel.recipes.reproductions.table import Experiment, TimedTable, row_name
from fenchel.recipes.reproductions.training import Occasion, configured
from fenchel.recipes.running import codec_of
from fenchel.training.fit import sized
from fenchel.training.graphs import graphed_steps
from fenchel.training.optimizer import adam, quick_products

ROUNDS, STEPS, WARM_UP = 30, 10, 3
QUICK_ROUNDS, QUICK_STEPS = 2, 1


def timed_figures(
    table: TimedTable, experiments: Sequence[Experiment], data: Splits, occasion: Occasion
) -> list[Finding]:
    """Target symbols a second of training, and the ratios to the first experiment.

    All are medians over rounds in which every model takes its turn, now first and now last, on the
    same batches: a few that stand for all lengths. The first rounds are not counted. In them
    kernels are compiled, and steps recorded where training records them.
    """
    recipes = {each.name: configured(table, each, occasion) for each in experiments}
    first = next(iter(recipes.values()))
    codec = codec_of(first, data.train)
    rounds, steps = (QUICK_ROUNDS, QUICK_STEPS) if occasion.quick else (ROUNDS, STEPS)
    encoded = Encoded.of(data.train, codec).to(best_device())
    chosen = _of_all_lengths(encoded, first.training.batch_size, steps)
    batches = [encoded.batch(place) for place in chosen]
    symbols = sum(int(encoded.target.lengths[place].sum()) for place in chosen)
    speeds: dict[str, list[float]] = {name: [] for name in recipes}
    with quick_products():
        contenders = {name: _Contender(made, codec) for name, made in recipes.items()}
        for turn in range(WARM_UP + rounds):
            for name in list(contenders)[:: -1 if turn % 2 else 1]:
                speed = contenders[name].symbols_a_second(batches, symbols)
                if turn >= WARM_UP:
                    speeds[name].append(speed)
    return [*_medians(experiments, speeds), *_ratios(experiments, speeds)]


def _of_all_lengths(data: Encoded, batch_size: int, count: int) -> list[Tensor]:
    """Whole batches in the middle of equal parts of all, which are in the order of their lengths."""
    whole = LengthBuckets(data, batch_size, shuffle=False).batches()
    whole = [batch for batch in whole if len(batch) == batch_size] or whole
    return [whole[(2 * part + 1) * len(whole) // (2 * count)] for part in range(count)]


def _medians(experiments: Sequence[Experiment], speeds: dict[str, list[float]]) -> list[Finding]:
    return [
        Finding(
            row_name(each, "symbols a second"), median(speeds[each.name]), each.paper.get("words")
        )
        for each in experiments
    ]


def _ratios(experiments: Sequence[Experiment], speeds: dict[str, list[float]]) -> list[Finding]:
    """How fast the others are beside the first, round by round."""
    first, *others = experiments
    found = []
    for each in others:
        rounds = zip(speeds[each.name], speeds[first.name], strict=True)
        known = "words" in each.paper and "words" in first.paper
        paper = each.paper["words"] / first.paper["words"] if known else None
        ours = median(other / base for other, base in rounds)
        found.append(Finding(f"{each.name} / {first.name}: speed", ours, paper))
    return found


class _Contender:
    """A model that trains on what it is given, as `fenchel.training.fit` would train it."""

    def __init__(self, recipe: Recipe, codec: Codec) -> None:
        torch.manual_seed(recipe.training.seed)
        self.device, self.config = best_device(), recipe.training
        self.model = Seq2Seq(sized(recipe.model, codec)).to(self.device).train()
        self.optimizer = adam(self.model.parameters(), self.config, self.device)
        self.graphs = graphed_steps(self.model, self.config, self.device)

    def symbols_a_second(self, batches: Sequence[Batch], symbols: int) -> float:
        """The speed of one step for every batch; `symbols` are in all targets together."""
        self._wait()
        begin = time.perf_counter()
        for seed, batch in enumerate(batches):
            self._step(batch, seed)
        self._wait()
        return symbols / (time.perf_counter() - begin)

    def _step(self, batch: Batch, seed: int) -> None:
        if self.graphs is not None:
            self.graphs(batch, seed)
        else:
            self._gradients(batch)
        self.optimizer.step()

    def _gradients(self, batch: Batch) -> None:
        narrow = torch.float16 if self.config.precision == "16-mixed" else torch.bfloat16
        mixed = self.config.precision != "32-true"
        with torch.autocast(self.device.type, narrow, enabled=mixed):
            loss, statistics = self.model.loss(batch, describe=False)
        self.optimizer.zero_grad(set_to_none=True)
        (loss / statistics.tokens).backward()
        if self.config.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
