"""How one call is timed: a timer a kind of device, behind one interface."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import torch


class Timer(Protocol):
    def time(self, step: Callable[[], object]) -> float:
        """Run `step` once and return its seconds."""
        ...


class WallTimer:
    """The clock on the wall: for a CPU, where a call returns when it is done."""

    def time(self, step: Callable[[], object]) -> float:
        start = time.perf_counter()
        step()
        return time.perf_counter() - start


class CudaTimer:
    """Events on the stream: for a GPU, where a call returns before it is done."""

    def time(self, step: Callable[[], object]) -> float:
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        step()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1000


def timer_for(device: str) -> Timer:
    return CudaTimer() if device.startswith("cuda") else WallTimer()
