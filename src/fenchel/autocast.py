"""The state of autocast on a device, queried in a way that `torch.compile` can trace."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

# To ask about such a device is an error, and whether one is such is a question that Dynamo does not
# trace in every version of torch; but the answer never changes.
WITHOUT_AUTOCAST = frozenset(
    kind for kind in ("meta", "vulkan", "lazy") if not torch.amp.is_autocast_available(kind)
)


def autocast_dtype(device: torch.device) -> torch.dtype | None:
    """The dtype of matrix products under autocast on this device; None if it is off."""
    if device.type in WITHOUT_AUTOCAST or not torch.is_autocast_enabled(device.type):
        return None
    return torch.get_autocast_dtype(device.type)


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Where autocast rounds nothing."""
    if autocast_dtype(device) is None:
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def rounded_like(given: Tensor, result: Tensor) -> Tensor:
    """`result` in the dtype of what was given; under autocast it stays as wide as it is."""
    return result if autocast_dtype(given.device) is not None else result.to(given.dtype)
