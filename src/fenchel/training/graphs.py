"""Training steps recorded as CUDA graphs: a step of some hundred kernels becomes one launch.

Launching the kernels of a recurrent model takes longer than running them. A graph repeats recorded
launches on the same memory, so batches are padded to a few shapes, and each shape is recorded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fenchel.data.vocabulary import PAD
from fenchel.errors import FenchelError
from fenchel.training.config import TrainingConfig

MULTIPLE = 4  # padded widths are rounded up to multiples
WARM_UPS = 2  # steps before recording: kernels are compiled, libraries allocate their workspaces

StepRecorder = Callable[[Callable[[], None]], Callable[[], None]]


class GraphedSteps:
    """Computes gradients of the mean loss, clipped, for batches of at most `batch_size` rows.

    The parameters' `.grad` are allocated here, once, and overwritten by every call; they may be read and
    passed to an optimizer, and must not be set to None.

    Args:
        model: On its device, in training mode.
        batch_size: Rows of a recorded batch. A smaller batch is filled up with padding, which does not
            contribute to the loss.
        fields: Padded fields of a batch that a step reads, (B, width) each; other fields are those of the
            first batch of a shape.
        clip: Maximum norm of the gradient, or None.
        record: Returns a function that repeats a step. The default records CUDA graphs.
    """

    def __init__(
        self,
        model: Any,
        batch_size: int,
        fields: tuple[str, ...],
        clip: float | None = None,
        record: StepRecorder | None = None,
    ) -> None:
        self.model, self.batch_size, self.fields, self.clip = model, batch_size, fields, clip
        self._record = CudaRecorder() if record is None else record
        self._shapes: dict[tuple[int, ...], tuple[Any, Callable[[], None]]] = {}
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        for parameter in self._parameters:
            parameter.grad = torch.zeros_like(parameter)

    def __call__(self, batch: Any, seed: int) -> None:
        """Compute the gradients of a batch with the random numbers of `seed`."""
        widths = tuple(_rounded(getattr(batch, name).shape[1]) for name in self.fields)
        if widths not in self._shapes:
            self._shapes[widths] = self._recorded(widths, batch)
        static, replay = self._shapes[widths]
        for name in self.fields:
            _fill(getattr(static, name), getattr(batch, name))
        torch.manual_seed(seed)
        replay()

    def compute(self, batch: Any) -> None:
        """Compute the gradients of a batch without a recording."""
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        torch._foreach_zero_(gradients)
        loss = self.model.loss(batch, describe=False)["loss"]
        (loss.total / loss.count).backward()
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self._parameters, self.clip)

    def _recorded(self, widths: tuple[int, ...], batch: Any) -> tuple[Any, Callable[[], None]]:
        """A batch of these widths that stays in place, and the step that reads it."""
        buffers = {
            name: getattr(batch, name).new_full((self.batch_size, width), PAD)
            for name, width in zip(self.fields, widths, strict=True)
        }
        for name, buffer in buffers.items():
            _fill(buffer, getattr(batch, name))
        static = batch._replace(**buffers)
        return static, self._record(lambda: self.compute(static))


def records_steps(config: TrainingConfig, fields: tuple[str, ...]) -> bool:
    """Whether steps are recorded: as the configuration says, or wherever possible."""
    if config.cuda_graphs is not None:
        if config.cuda_graphs and not fields:
            raise FenchelError("cuda_graphs cannot be used with this task")
        return config.cuda_graphs
    if not fields or not torch.cuda.is_available():
        return False
    if config.accelerator not in ("auto", "gpu", "cuda"):
        return False
    all_devices = config.devices in ("auto", "-1", -1)
    devices = torch.cuda.device_count() if all_devices else config.devices
    return config.steps_are_plain and config.nodes == 1 and devices in (1, "1")


def graphed_steps(
    model: Any,
    config: TrainingConfig,
    device: torch.device,
    fields: tuple[str, ...],
    processes: int = 1,
) -> GraphedSteps:
    """Recorded steps for one process on a GPU."""
    if device.type != "cuda" or processes > 1:
        raise FenchelError(
            f"cuda_graphs requires a single process on a GPU, got {processes} on {device}"
        )
    return GraphedSteps(model, config.batch_size, fields, config.clip)


class CudaRecorder:
    """Records steps as CUDA graphs that share their memory, since only one runs at a time."""

    def __init__(self) -> None:
        self._pool: Any = None

    def __call__(self, step: Callable[[], None]) -> Callable[[], None]:
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                step()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            step()
        self._pool = graph.pool()
        return graph.replay


def _rounded(width: int) -> int:
    return -(-width // MULTIPLE) * MULTIPLE


def _fill(buffer: Tensor, values: Tensor) -> None:
    """Copy values into the upper left corner of a buffer, and padding elsewhere."""
    buffer.fill_(PAD)
    buffer[: values.shape[0], : values.shape[1]] = values
