"""The floating-point precision of continuous attention."""

from __future__ import annotations

import torch
from torch import Tensor


def wide_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on a device without float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def wide(tensor: Tensor) -> Tensor:
    """`tensor` in `wide_dtype`."""
    return tensor.to(wide_dtype(tensor.device))
