"""How one call is timed: a timer a kind of device, behind one interface."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import torch

from benchmarks.problems import Case


class Timer(Protocol):
    def time(self, step: Callable[[], object]) -> float:
        """Run `step` once or more and return the seconds of one."""
        ...


class WallTimer:
    """The clock on the wall: for a CPU, where a call returns when it is done."""

    def time(self, step: Callable[[], object]) -> float:
        start = time.perf_counter()
        step()
        return time.perf_counter() - start


class CudaTimer:
    """Events on the stream: for a GPU, where a call returns before it is done.

    The cache holds none of the inputs, and the device is kept busy until the host has queued the whole
    step, so that its kernels follow each other as they do in a program that keeps the device busy.
    """

    CACHE_BYTES = 2**28
    HEAD_START = 2_000_000  # cycles, about a millisecond

    def __init__(self) -> None:
        self.cache = torch.empty(self.CACHE_BYTES, dtype=torch.int8, device="cuda")

    def time(self, step: Callable[[], object]) -> float:
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        self.cache.zero_()
        torch.cuda._sleep(self.HEAD_START)
        start.record()
        step()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1000


class HostTimer:
    """The time until calls return, whatever the device still has to do."""

    CALLS = 50

    def time(self, step: Callable[[], object]) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(self.CALLS):
            step()
        return (time.perf_counter() - start) / self.CALLS


def timer_for(case: Case) -> Timer:
    if case.clock == "host":
        return HostTimer()
    return CudaTimer() if case.device.startswith("cuda") else WallTimer()
