"""`kernel` marks the functions that the host launches; functions that kernels call are `triton.jit`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import NoneType
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import Parameter
from triton import knobs
from triton.compiler import CompiledKernel
from triton.runtime import driver as triton_driver
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from fenchel.kernels.triton.launch.addressing import (
    Strides,
)

NO_DEVICE = -1  # the number of no device, to which `torch.cuda.device` does not change
MAX_LAUNCHES = 1024  # size at which the cache of launches is cleared
TENSOR_TYPES = frozenset((Tensor, Parameter))
NUMBER_TYPES = frozenset((int, float, bool, NoneType, Strides))
driver: Any = triton_driver  # its devices and streams have no type stubs


ALIGNMENT_BYTES = 16  # Triton compiles another kernel for addresses that are not multiples of it


class Launch(NamedTuple):
    """A compiled kernel on a grid, and the constants that follow its other arguments."""

    compiled: Any
    start: partial[Any]
    constants: tuple[Any, ...]


RecordedLaunch = tuple[
    Launch | None, tuple[Any, ...]
]  # the launch (None if it cannot be cached), and its arguments


_record: ContextVar[list[RecordedLaunch] | None] = ContextVar("recorded launches", default=None)


class Kernel(JITFunction):
    """A kernel compiled with fused multiply-add.

    Times and errors are measured with it; Triton has the option from 3.9 on.

    A repeated launch (the same grid, numbers and constants, and tensors of the same dtype, device
    and alignment) skips Triton's search for the compiled kernel. It runs on the device of its
    tensors, whatever the current device is.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.launches: dict[tuple[Any, ...], Launch] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        home = device_of(args)
        if warmup or self.pre_run_hooks or has_launch_hooks():
            with torch.cuda.device(home):
                return self._search(None, args, options, grid, warmup=warmup)
        device = driver.active.get_current_device()
        if home not in (device, NO_DEVICE):
            with torch.cuda.device(home):
                return self.run(*args, grid=grid, warmup=False, **options)
        key, passed = [device, grid, knobs.runtime.debug, *options.items()], []
        for value in args:
            kind = type(value)
            if kind in TENSOR_TYPES:
                place = value.data_ptr()
                key += value.dtype, value.get_device(), place % ALIGNMENT_BYTES == 0
                passed.append(place)
            elif kind in NUMBER_TYPES:
                key += kind, value
                passed.append(value)
            else:
                return self._search(None, args, options, grid)
        launch = self.launches.get(tuple(key))
        if launch is None:
            return self._search(tuple(key), args, options, grid)
        record = _record.get()
        if record is not None:
            record.append((launch, args))
        start(launch, device, passed)
        return launch.compiled

    def _search(
        self,
        key: tuple[Any, ...] | None,
        args: tuple[Any, ...],
        options: dict[str, Any],
        grid: tuple[int, ...],
        *,
        warmup: bool = False,
    ) -> Any:
        """Launch through Triton, and cache the launch if there is a key."""
        if self.hash is None:
            _make_keys(self)
        compiled = super().run(*args, grid=grid, warmup=warmup, enable_fp_fusion=True, **options)
        # Triton would compare them with the constants of the modules at every launch, for half its time.
        self.used_global_vals = {}
        launch = None
        constants = [each.name for each in self.params[len(args) :]]
        apart = len(constants) == len(self.constexprs) and options.keys() >= set(constants)
        if key is not None and apart and isinstance(compiled, CompiledKernel):
            run: Any = compiled.run
            start = partial(run, *(*grid, 1, 1)[:3])
            launch = Launch(compiled, start, tuple(options[name] for name in constants))
            remember(self.launches, key, launch)
        record = _record.get()
        if record is not None:
            record.append((launch, args))
        return compiled


def device_of(args: tuple[Any, ...]) -> int:
    """The number of the device of the first of the tensors.

    Triton compiles for the current device and launches there; PyTorch's operators run on the device of
    their tensors.
    """
    for value in args:
        tensor = value.base if isinstance(value, TensorDescriptor) else value
        if isinstance(tensor, Tensor):
            return tensor.get_device()
    return NO_DEVICE


def start(launch: Launch, device: int, passed: list[Any]) -> None:
    """Launch with these arguments, tensors as addresses, without launch hooks."""
    compiled, start, constants = launch
    stream = driver.active.get_current_stream(device)
    metadata = compiled.packed_metadata
    start(stream, compiled.function, metadata, None, None, None, *passed, *constants)


def remember(known: dict[Any, Any], key: tuple[Any, ...], value: Any) -> None:
    if len(known) >= MAX_LAUNCHES:
        known.clear()
    known[key] = value


def has_launch_hooks() -> bool:
    """Whether launch hooks are installed."""
    enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))


@contextmanager
def record() -> Iterator[list[RecordedLaunch]]:
    """Record the launches in the block."""
    launches: list[RecordedLaunch] = []
    token = _record.set(launches)
    try:
        yield launches
    finally:
        _record.reset(token)


def _make_keys(function: JITFunction) -> None:
    """Make the cache key of a function, after those of all functions that it calls.

    In Triton 3.6 a key depends on which of these have one already: after other kernels, the same kernel
    would have another key and be compiled again.
    """
    for name in function.fn.__code__.co_names:
        called = function.fn.__globals__.get(name, getattr(tl, name, None))
        if isinstance(called, JITFunction) and called.hash is None:
            _make_keys(called)
    _ = function.cache_key


def kernel(function: Any) -> Any:
    """Compile the function at its launch, or interpret it if Triton interprets."""
    return triton.jit(function) if knobs.runtime.interpret else Kernel(function)
