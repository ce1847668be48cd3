"""The precision in which continuous attention computes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def wide_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on a device that has no more."""
    return torch.float32 if device.type == "mps" else torch.float64


def wide(tensor: Tensor) -> Tensor:
    """`tensor` in that precision."""
    return tensor.to(wide_dtype(tensor.device))


def has_autocast(device: torch.device) -> bool:
    """Whether autocast is on for this kind of device."""
    known = torch.amp.is_autocast_available(device.type)
    return known and torch.is_autocast_enabled(device.type)


def without_autocast(device: torch.device) -> AbstractContextManager:
    """Where no matrix product is rounded to half precision."""
    return torch.autocast(device.type, enabled=False) if has_autocast(device) else nullcontext()
