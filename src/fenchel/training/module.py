"""A training step, as Lightning runs it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fenchel.extras import require
from fenchel.models.seq2seq import Seq2Seq, Statistics
from fenchel.training.config import TrainingConfig
from fenchel.training.graphs import GraphedSteps, graphed_steps, records_steps
from fenchel.training.optimizer import adam
from fenchel.training.progress import learning_rate
from fenchel.training.segments import Segments, Step
from fenchel.training.weights import restore_optimizer

lightning = require("lightning.pytorch", extra="train")


class TrainingModule(lightning.LightningModule):
    """Adam on the loss a token. A step's random numbers depend on the seed and its place alone.

    Attributes:
        totals: sums over the steps looked at since the last validation, on the device.
        latest: the sums of the last of these steps.
    """

    def __init__(
        self,
        model: Seq2Seq,
        config: TrainingConfig,
        segments: Segments,
        checkpoint: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.config, self.segments = model, config, segments
        self._checkpoint = checkpoint
        if config.compile:
            model.decoder.compile_steps(dynamic=True)
        self.totals: Tensor | None = None if checkpoint is None else checkpoint["totals"]
        self.latest: Statistics | None = None
        self._graphs: GraphedSteps | None = None
        self.automatic_optimization = not records_steps(config)

    def setup(self, stage: str) -> None:
        rank, world = self.trainer.global_rank, self.trainer.world_size
        self.segments.place(self.trainer.strategy.root_device, rank=rank, world=world)

    def train_dataloader(self) -> Segments:
        return self.segments

    def configure_optimizers(self) -> torch.optim.Optimizer:
        device = self.trainer.strategy.root_device
        return adam(self.model.parameters(), self.config, device)

    def on_train_start(self) -> None:
        """Weights are in place already; the rest of a checkpoint is put back here."""
        if self._checkpoint is not None:
            optimizer: Any = self.optimizers(use_pl_optimizer=False)
            restore_optimizer(optimizer, self._checkpoint["optimizer"])
            self.trainer.precision_plugin.load_state_dict(self._checkpoint["precision"])
        if self.totals is not None:
            self.totals = self.totals.to(self.device)
        self._checkpoint = None
        world = self.trainer.world_size
        self._graphs = graphed_steps(self.model, self.config, self.device, world)

    def transfer_batch_to_device(self, batch: Step, device: torch.device, _: int) -> Step:
        """The data set lies on the device already, and lengths are wanted on the CPU."""
        return batch

    def training_step(self, step: Step, batch_idx: int) -> Tensor | None:
        seed = _seed(self.config.seed, step, self.global_rank)
        self._set_rate(step)
        look = step.number % self.config.log_every == 0
        if self._graphs is None:
            torch.manual_seed(seed)
            total, statistics = self.model.loss(step.batch, describe=look)
            self._note(statistics, look)
            return total / self._tokens_a_process(statistics.tokens)
        if look:
            with torch.no_grad():
                self._note(self.model.loss(step.batch)[1], look)
        self._graphs(step.batch, seed)
        self.optimizers().step()
        return None

    def _note(self, statistics: Statistics, look: bool) -> None:
        if look:
            sums = statistics.stacked()
            self.totals = sums if self.totals is None else self.totals + sums
            self.latest = statistics

    def _set_rate(self, step: Step) -> None:
        taken = step.epoch * self.segments.steps_an_epoch + step.number
        passes = step.epoch + step.number / step.count
        rate = learning_rate(self.config, self.segments.progress, taken, passes)
        optimizer: Any = self.optimizers(use_pl_optimizer=False)
        for group in optimizer.param_groups:
            group["lr"] = rate

    def _tokens_a_process(self, tokens: Tensor) -> Tensor:
        """Gradients are averaged over processes: dividing by this makes it a mean over all tokens."""
        world = self.trainer.world_size
        if world == 1:
            return tokens
        total = tokens.clone()
        torch.distributed.all_reduce(total)
        return total / world


def _seed(seed: int, step: Step, rank: int) -> int:
    """Different for every step and process; a run that is continued draws the same numbers."""
    mixed = seed
    for part in (step.epoch, step.number, rank):
        mixed = (mixed * 0x9E3779B97F4A7C15 + part + 1) % (1 << 63)
    return mixed
