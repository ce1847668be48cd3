"""The optimizer of training, and the precision of its matrix products."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from fenchel.training.config import TrainingConfig


def adam(
    parameters: Iterable[torch.nn.Parameter], config: TrainingConfig, device: torch.device
) -> torch.optim.Adam:
    """Adam; on a GPU one kernel for all parameters, unless gradients have a scale to be taken off."""
    fused = True if device.type == "cuda" and config.precision != "16-mixed" else None
    return torch.optim.Adam(parameters, config.learning_rate, fused=fused)


@contextmanager
def quick_products() -> Iterator[None]:
    """Matrix products may use TF32 on a GPU."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
