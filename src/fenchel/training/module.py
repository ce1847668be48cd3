"""The training step that Lightning runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fenchel.extras import require
from fenchel.models.means import Mean, Means, stack_means
from fenchel.training.checkpoint import restore_optimizer
from fenchel.training.config import TrainingConfig
from fenchel.training.device import adam
from fenchel.training.graphs import GraphedSteps, graphed_steps, records_steps
from fenchel.training.schedule import learning_rate
from fenchel.training.steps import Step, Steps

lightning = require("lightning.pytorch", extra="train")


class TrainingModule(lightning.LightningModule):
    """Adam on the mean loss. The random numbers of a step depend only on the seed and its place.

    Args:
        model: A model whose `loss` returns `Means`.
        config: The training configuration.
        steps: The batches.
        recordable_fields: See `fenchel.training.Task`.
        checkpoint: Where to resume.

    Attributes:
        sums: Sums and counts, by name, of the steps that this process has read since the last
            validation, on the device.
        latest: Sums and counts of the last of these steps.
    """

    def __init__(
        self,
        model: Any,
        config: TrainingConfig,
        steps: Steps,
        recordable_fields: tuple[str, ...] = (),
        checkpoint: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.config, self.steps = model, config, steps
        self.recordable_fields = recordable_fields
        self._checkpoint = checkpoint
        self.sums: dict[str, Tensor] = {} if checkpoint is None else checkpoint["means"]
        self.latest: dict[str, Tensor] = {}
        self._first_count = self._counted = torch.ones(())
        self._graphs: GraphedSteps | None = None
        self.automatic_optimization = not records_steps(config, recordable_fields)

    def setup(self, stage: str) -> None:
        rank, world = self.trainer.global_rank, self.trainer.world_size
        self.steps.place(self.trainer.strategy.root_device, rank=rank, world=world)

    def train_dataloader(self) -> Steps:
        return self.steps

    def configure_optimizers(self) -> torch.optim.Optimizer:
        device = self.trainer.strategy.root_device
        return adam(self.model.parameters(), self.config, device)

    def on_train_start(self) -> None:
        """Restore all of the checkpoint but the weights, which are in place already."""
        if self._checkpoint is not None:
            optimizer: Any = self.optimizers(use_pl_optimizer=False)
            restore_optimizer(optimizer, self._checkpoint["optimizer"])
            self.trainer.precision_plugin.load_state_dict(self._checkpoint["precision"])
        first = self.trainer.is_global_zero  # a checkpoint has the sums of all processes
        self.sums = {
            name: sums.to(self.device) if first else torch.zeros_like(sums, device=self.device)
            for name, sums in self.sums.items()
        }
        self._checkpoint = None
        if records_steps(self.config, self.recordable_fields):
            world, fields = self.trainer.world_size, self.recordable_fields
            self._graphs = graphed_steps(self.model, self.config, self.device, fields, world)

    def transfer_batch_to_device(self, batch: Step, device: torch.device, _: int) -> Step:
        """Batches are gathered on the device, and lengths stay on the CPU."""
        return batch

    def training_step(self, step: Step, batch_idx: int) -> Tensor | None:
        seed = _seed(self.config.seed, step, self.global_rank)
        self._set_rate(step)
        read = step.number % self.config.log_every == 0
        if self._graphs is None:
            torch.manual_seed(seed)
            means = self.model.loss(step.batch, describe=read)
            if read:
                self._add(means)
            return self._share_of_step(means["loss"], step)
        if read:
            with torch.no_grad():
                self._add(self.model.loss(step.batch))
        self._graphs(step.batch, seed)
        self.optimizers().step()
        return None

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Make the gradient that of the mean over all batches of the step, before it is clipped."""
        if self.config.accumulate > 1:
            factor = self._first_count / self._counted
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    parameter.grad *= factor

    def total_sums(self) -> dict[str, Tensor]:
        """The sums and counts of all processes; every process must call this."""
        if not self.sums or self.trainer.world_size == 1:
            return self.sums
        stacked = torch.stack(list(self.sums.values()))
        total = self.trainer.strategy.reduce(stacked, reduce_op="sum")
        return dict(zip(self.sums, total, strict=True))

    def _add(self, means: Means) -> None:
        self.latest = dict(zip(means, stack_means(means), strict=True))
        self.sums = {name: self.sums.get(name, 0) + sums for name, sums in self.latest.items()}

    def _share_of_step(self, loss: Mean, step: Step) -> Tensor:
        """The total loss of a batch, divided by the count of the first batch of its step.

        The count of all batches of the step is known after the last one; `on_before_optimizer_step`
        then replaces the divisor. Lightning divides by `accumulate`.
        """
        count = self._count_per_process(loss)
        if step.number % self.config.accumulate == 0:
            self._first_count, self._counted = count, count
        else:
            self._counted = self._counted + count
        return loss.total * self.config.accumulate / self._first_count

    def _set_rate(self, step: Step) -> None:
        update = step.number // self.config.accumulate
        number = step.epoch * self.steps.updates_per_epoch + update
        epochs = step.epoch + update * self.config.accumulate / step.count
        rate = learning_rate(self.config, self.steps.progress, number, epochs)
        optimizer: Any = self.optimizers(use_pl_optimizer=False)
        for group in optimizer.param_groups:
            group["lr"] = rate

    def _count_per_process(self, loss: Mean) -> Tensor:
        """Gradients are averaged over processes: dividing by this gives the mean over all counts."""
        world = self.trainer.world_size
        if world == 1:
            return loss.count
        total = loss.count.clone()
        torch.distributed.all_reduce(total)
        return total / world


def _seed(seed: int, step: Step, rank: int) -> int:
    """A different seed for every step and process, the same when training is resumed."""
    mixed = seed
    for part in (step.epoch, step.number, rank):
        mixed = (mixed * 0x9E3779B97F4A7C15 + part + 1) % (1 << 63)
    return mixed
