"""Training speed of the models of a table, measured on the same batches in alternating order."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from fenchel.data.batches import LengthBuckets
from fenchel.data.dataset import Dataset
from fenchel.recipes.reproductions.config import ReproductionConfig, TableData
from fenchel.recipes.reproductions.jobs import Reporter, read_splits
from fenchel.recipes.reproductions.results import Measurement
from fenchel.recipes.reproductions.tables import Experiment, TimedTable
from fenchel.training import Recipe, Splits, TrainingConfig
from fenchel.training.device import adam, best_device, fast_matmul
from fenchel.training.graphs import graphed_steps, records_steps

WARM_UP = 3
EFFORT = {"cuda": (30, 10), "cpu": (10, 5)}  # rounds and steps
QUICK_EFFORT = 2, 1


@dataclass(frozen=True)
class ThroughputJob:
    """A table of speeds to be measured, with the recipe of every experiment."""

    table: TimedTable
    experiments: Sequence[Experiment]
    recipes: Mapping[str, Recipe]
    source: TableData

    @classmethod
    def of(
        cls, table: TimedTable, experiments: Sequence[Experiment], config: ReproductionConfig
    ) -> ThroughputJob:
        """The job for some experiments of a table."""
        recipes = {each.name: config.recipe(table, each) for each in experiments}
        return cls(table, experiments, recipes, config.table_data(table))

    def __call__(self, reporter: Reporter) -> list[Measurement]:
        """The speed of every model, and its ratio to the speed of the first one."""
        data = read_splits(self.source, next(iter(self.recipes.values())))
        for note in data.notes:
            reporter.message(note)
        baselines = self.table.baselines
        speeds = measure_speeds(self.recipes, data, baselines, quick=self.source.quick)
        return [*self._speeds(speeds), *self._ratios(speeds)]

    def _speeds(self, speeds: Mapping[str, list[float]]) -> list[Measurement]:
        paper = {each.name: each.paper.get("words") for each in self.experiments}
        return [
            Measurement(f"{name}: symbols a second", median(each), paper.get(name))
            for name, each in speeds.items()
        ]

    def _ratios(self, speeds: Mapping[str, list[float]]) -> list[Measurement]:
        """Medians over rounds of the ratio to the first experiment."""
        paper = {
            each.name: each.paper.get("words", each.paper.get("speed")) for each in self.experiments
        }
        first, *others = speeds
        ratios = []
        for name in others:
            rounds = zip(speeds[name], speeds[first], strict=True)
            theirs, base = paper.get(name), paper[first]
            known = theirs / base if theirs is not None and base is not None else None
            ours = median(other / base for other, base in rounds)
            ratios.append(Measurement(f"{name} / {first}: speed", ours, known))
        return ratios


def measure_speeds(
    recipes: Mapping[str, Recipe],
    data: Splits,
    baselines: Mapping[str, Callable[[Any], Any]] | None = None,
    *,
    quick: bool = False,
) -> dict[str, list[float]]:
    """Target symbols per second of training, for each model and round.

    In every round each model takes one step on each of the same batches, which represent all lengths.
    The order of the models is reversed after every round. Warm-up rounds, in which kernels are compiled
    and CUDA graphs recorded, are not counted. Baselines are trained in the same loop.
    """
    first = next(iter(recipes.values()))
    processor = first.task.fit_processor(data.train)
    device = best_device()
    rounds, steps = QUICK_EFFORT if quick else EFFORT[device.type]
    encoded = processor.encode(data.train).to(device)
    chosen = _representative(encoded, first.training, steps)
    batches = [encoded.batch(indices) for indices in chosen]
    symbols = sum(int(encoded.lengths[indices, -1].sum()) for indices in chosen)
    with fast_matmul():
        trainers = {name: _Trainer(recipe, processor) for name, recipe in recipes.items()}
        for name, build in (baselines or {}).items():
            trainers[name] = _Trainer(first, processor, build)
        speeds: dict[str, list[float]] = {name: [] for name in trainers}
        for turn in range(WARM_UP + rounds):
            for name in list(trainers)[:: -1 if turn % 2 else 1]:
                speed = symbols / trainers[name].seconds(batches)
                if turn >= WARM_UP:
                    speeds[name].append(speed)
    return speeds


def _representative(data: Dataset, config: TrainingConfig, count: int) -> list[Tensor]:
    """Batches from the middle of equal parts of all full batches sorted by length."""
    size, symbols = config.batch_size, config.batch_tokens
    batches = LengthBuckets(data, size, batch_tokens=symbols, shuffle=False).batches()
    full = [batch for batch in batches if len(batch) == size or symbols is not None] or batches
    return [full[(2 * part + 1) * len(full) // (2 * count)] for part in range(count)]


class _Trainer:
    """A model with the training step of `fenchel.training.fit`; `build` makes a baseline instead."""

    def __init__(
        self, recipe: Recipe, processor: Any, build: Callable[[Any], Any] | None = None
    ) -> None:
        torch.manual_seed(recipe.training.seed)
        self.device, self.config = best_device(), recipe.training
        task = recipe.task.sized(processor)
        model: Any = task.build_model() if build is None else build(task.model)
        self.model: Any = model.to(self.device).train()
        self.optimizer = adam(self.model.parameters(), self.config, self.device)
        fields = task.recordable_fields
        self.graphs = None
        if records_steps(self.config, fields):
            self.graphs = graphed_steps(self.model, self.config, self.device, fields)

    def seconds(self, batches: Sequence[Any]) -> float:
        """The duration of one step per batch."""
        self._synchronize()
        start = time.perf_counter()
        for seed, batch in enumerate(batches):
            self._step(batch, seed)
        self._synchronize()
        return time.perf_counter() - start

    def _step(self, batch: Any, seed: int) -> None:
        if self.graphs is not None:
            self.graphs(batch, seed)
        else:
            self._compute_gradients(batch)
        self.optimizer.step()

    def _compute_gradients(self, batch: Any) -> None:
        dtype = torch.float16 if self.config.precision == "16-mixed" else torch.bfloat16
        mixed = self.config.precision != "32-true"
        with torch.autocast(self.device.type, dtype, enabled=mixed):
            loss = self.model.loss(batch, describe=False)["loss"]
        self.optimizer.zero_grad(set_to_none=True)
        (loss.total / loss.count).backward()
        if self.config.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
