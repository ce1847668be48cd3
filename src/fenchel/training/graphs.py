"""Training steps recorded as CUDA graphs: a step of some hundred kernels becomes one launch.

A recurrent model is bound by the launches of its kernels, not by their work. A graph repeats recorded
launches on the same memory, so batches are padded to a few shapes, and each shape is recorded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fenchel.data.encoded import Batch
from fenchel.data.vocabulary import PAD
from fenchel.errors import rule
from fenchel.models.seq2seq import Seq2Seq
from fenchel.training.config import TrainingConfig

MULTIPLE = 4  # the widths of sources and targets are rounded up to multiples
WARM_UPS = 2  # steps before recording: kernels are compiled, libraries make their workspaces

Record = Callable[[Callable[[], None]], Callable[[], None]]


class _Shape(NamedTuple):
    """What a recorded step reads."""

    source: Tensor
    target: Tensor
    replay: Callable[[], None]


class GraphedSteps:
    """Computes gradients of the loss a token, clipped, for batches of at most `batch_size` rows.

    The parameters' `.grad` are made here, once, and written anew by every call; they may be read and
    given to an optimizer, and must not be set to None.

    Args:
        model: on its device, in training mode.
        batch_size: rows of a recorded batch; a smaller one is filled up with padding, which has no
            part in the loss.
        clip: the largest norm of the gradient, or None.
        record: makes a function that repeats a step; CUDA graphs unless given.
    """

    def __init__(
        self,
        model: Seq2Seq,
        batch_size: int,
        clip: float | None = None,
        record: Record | None = None,
    ) -> None:
        self.model, self.batch_size, self.clip = model, batch_size, clip
        self._record = CudaRecorder() if record is None else record
        self._shapes: dict[tuple[int, int], _Shape] = {}
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        for parameter in self._parameters:
            parameter.grad = torch.zeros_like(parameter)

    def __call__(self, batch: Batch, seed: int) -> None:
        """The gradients of a batch, with the random numbers of `seed`."""
        widths = _rounded(batch.source.shape[1]), _rounded(batch.target.shape[1])
        if widths not in self._shapes:
            self._shapes[widths] = self._recorded(*widths, like=batch)
        shape = self._shapes[widths]
        for buffer, values in ((shape.source, batch.source), (shape.target, batch.target)):
            _fill(buffer, values)
        torch.manual_seed(seed)
        shape.replay()

    def compute(self, batch: Batch) -> None:
        """The same without a recording."""
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        torch._foreach_zero_(gradients)
        total, statistics = self.model.loss(batch, describe=False)
        (total / statistics.tokens).backward()
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self._parameters, self.clip)

    def _recorded(self, source_width: int, target_width: int, like: Batch) -> _Shape:
        source = like.source.new_full((self.batch_size, source_width), PAD)
        target = like.target.new_full((self.batch_size, target_width), PAD)
        _fill(source, like.source)
        _fill(target, like.target)
        static = Batch(source, like.source_lengths, target, like.index)
        return _Shape(source, target, self._record(lambda: self.compute(static)))


def records_steps(config: TrainingConfig) -> bool:
    """Whether steps are recorded: as the configuration says, or wherever that can be done."""
    if config.cuda_graphs is not None:
        return config.cuda_graphs
    if not torch.cuda.is_available() or config.accelerator not in ("auto", "gpu", "cuda"):
        return False
    all_devices = config.devices in ("auto", "-1", -1)
    devices = torch.cuda.device_count() if all_devices else config.devices
    return config.steps_are_plain and config.nodes == 1 and devices in (1, "1")


def graphed_steps(
    model: Seq2Seq, config: TrainingConfig, device: torch.device, processes: int = 1
) -> GraphedSteps | None:
    """Steps as the configuration wants them recorded; None if it does not."""
    if not records_steps(config):
        return None
    if device.type != "cuda" or processes > 1:
        expected, got = "one process on a GPU", f"{processes} on {device}"
        raise rule("cuda_graphs need a GPU of their own", expected=expected, got=got)
    return GraphedSteps(model, config.batch_size, config.clip)


class CudaRecorder:
    """Records steps as CUDA graphs that share their memory: only one of them runs at a time."""

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
    """Put values into the upper left corner, and padding elsewhere."""
    buffer.fill_(PAD)
    buffer[: values.shape[0], : values.shape[1]] = values
