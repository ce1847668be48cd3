"""Timers: one class per kind of device, with the same interface."""

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
    """Wall-clock time, for CPUs, where a call returns when it is done."""

    def time(self, step: Callable[[], object]) -> float:
        start = time.perf_counter()
        step()
        return time.perf_counter() - start


class CudaTimer:
    """CUDA events, for GPUs, where a call returns before it is done.

    The cache holds none of the inputs, and the device is kept busy until the host has queued the whole
    step, so that its kernels follow each other as they do in a program that keeps the device busy. If
    the device was ready too early, it is kept busy for longer; a step that waits for it is measured as
    it is in the end.
    """

    CACHE_BYTES = 2**28
    HEAD_STARTS = tuple(
        2**power * 1_000_000 for power in (1, 3, 5)
    )  # cycles: from a millisecond on

    def __init__(self) -> None:
        self.cache = torch.empty(self.CACHE_BYTES, dtype=torch.int8, device="cuda")

    def time(self, step: Callable[[], object]) -> float:
        seconds = 0.0
        for cycles in self.HEAD_STARTS:
            seconds, ready_early = self._measure(step, cycles)
            if not ready_early:
                break
        return seconds

    def _measure(self, step: Callable[[], object], cycles: int) -> tuple[float, bool]:
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        self.cache.zero_()
        torch.cuda._sleep(cycles)
        start.record()
        step()
        end.record()
        ready_early = start.query()
        end.synchronize()
        return start.elapsed_time(end) / 1000, ready_early


class HostTimer:
    """The time until calls return, even if a GPU has not finished."""

    CALLS = 50

    def time(self, step: Callable[[], object]) -> float:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(self.CALLS):
            step()
        return (time.perf_counter() - start) / self.CALLS


def timer_for(case: Case) -> Timer:
    if case.clock == "host":
        return HostTimer()
    return CudaTimer() if case.device.startswith("cuda") else WallTimer()
