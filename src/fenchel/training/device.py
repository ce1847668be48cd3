"""The device of a model, its optimizer, its CPU threads and the precision of matrix products."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import cpu

from fenchel.training.config import TrainingConfig


def best_device() -> torch.device:
    """A GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def adam(
    parameters: Iterable[torch.nn.Parameter], config: TrainingConfig, device: torch.device
) -> torch.optim.Adam:
    """Adam, in full precision as one kernel; in mixed precision Lightning cannot clip for it."""
    fused = True if device.type in ("cpu", "cuda") and config.precision == "32-true" else None
    betas = (config.beta1, config.beta2)
    return torch.optim.Adam(parameters, config.learning_rate, betas, fused=fused)


@contextmanager
def cpu_threads(count: int | None) -> Iterator[None]:
    """Use this number of CPU threads; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def fast_matmul() -> Iterator[None]:
    """Allow TF32 in matrix products on a GPU, and take the faster library for those on a CPU.

    With "medium", PyTorch computes the products with oneDNN instead of MKL, which does not use AVX-512
    on AMD's processors and is there 2.4 times slower. Only CPUs with AMX round to bfloat16 then; on
    others with AVX-512 the products stay in full single precision. oneDNN compiles code for every
    shape and keeps that of 1,024 of them, several gigabytes; a training step has fewer than 64.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    before = torch.get_float32_matmul_precision()
    full = torch.backends.cpu.get_cpu_capability() == "AVX512" and not cpu._is_amx_tile_supported()
    torch.set_float32_matmul_precision("medium" if full else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
