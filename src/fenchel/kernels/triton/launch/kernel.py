"""What the host launches is a `kernel`; what kernels call is a `triton.jit` function."""

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

from fenchel.kernels.triton.launch.addressing import Strides

ALIGNED = 16  # bytes; Triton compiles another kernel for an address that is no multiple
NOWHERE = -1  # the number of no device, to which `torch.cuda.device` does not change
MOST_LAUNCHES = 1024  # that are remembered before all are forgotten
TENSORS = frozenset((Tensor, Parameter))
NUMBERS = frozenset((int, float, bool, NoneType, Strides))

driver: Any = triton_driver  # its devices and streams are not declared


class Launch(NamedTuple):
    """A compiled kernel on a grid, and the constants that follow its other arguments."""

    compiled: Any
    start: partial[Any]
    constants: tuple[Any, ...]


Recorded = tuple[Launch | None, tuple[Any, ...]]  # none if it is not remembered; its arguments
_record: ContextVar[list[Recorded] | None] = ContextVar("recorded launches", default=None)


class Kernel(JITFunction):
    """A kernel that multiplies and adds in one instruction where it can.

    The times and the errors in the last bit are measured so; Triton asks for the choice from 3.9 on.

    What was launched before is launched again without Triton's search for the compiled kernel: the same
    grid, numbers and constants, and tensors of the same dtype, device and alignment. It runs where its
    tensors are, whichever device is the current one.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.launches: dict[tuple[Any, ...], Launch] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        home = device_of(args)
        if warmup or self.pre_run_hooks or watched():
            with torch.cuda.device(home):
                return self._search(None, args, options, grid, warmup=warmup)
        device = driver.active.get_current_device()
        if home not in (device, NOWHERE):
            with torch.cuda.device(home):
                return self.run(*args, grid=grid, warmup=False, **options)
        key, passed = [device, grid, knobs.runtime.debug, *options.items()], []
        for value in args:
            kind = type(value)
            if kind in TENSORS:
                place = value.data_ptr()
                key += value.dtype, value.get_device(), place % ALIGNED == 0
                passed.append(place)
            elif kind in NUMBERS:
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
        start_again(launch, device, passed)
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
        """Launch by way of Triton, and remember it where there is a key."""
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
    """The number of the device that holds the first of the tensors.

    Triton compiles for the current device and launches there, whatever it is given; PyTorch's own
    operators run where their tensors are.
    """
    for value in args:
        tensor = value.base if isinstance(value, TensorDescriptor) else value
        if isinstance(tensor, Tensor):
            return tensor.get_device()
    return NOWHERE


def start_again(launch: Launch, device: int, passed: list[Any]) -> None:
    """Launch with these arguments, a tensor by its address; nobody watches."""
    compiled, start, constants = launch
    stream = driver.active.get_current_stream(device)
    metadata = compiled.packed_metadata
    start(stream, compiled.function, metadata, None, None, None, *passed, *constants)


def remember(known: dict[Any, Any], key: tuple[Any, ...], value: Any) -> None:
    if len(known) >= MOST_LAUNCHES:
        known.clear()
    known[key] = value


def watched() -> bool:
    """Whether somebody wants to know of launches."""
    enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))


@contextmanager
def record() -> Iterator[list[Recorded]]:
    """What is launched in the block."""
    launches: list[Recorded] = []
    token = _record.set(launches)
    try:
        yield launches
    finally:
        _record.reset(token)


def _make_keys(function: JITFunction) -> None:
    """Make the key under which a function is stored when compiled, after those of all that it calls.

    In Triton 3.6 a key depends on which of these have one already: after other kernels, the same kernel
    would be sought under another key, and compiled again.
    """
    for name in function.fn.__code__.co_names:
        called = function.fn.__globals__.get(name, getattr(tl, name, None))
        if isinstance(called, JITFunction) and called.hash is None:
            _make_keys(called)
    _ = function.cache_key


def kernel(function: Any) -> Any:
    """Compile the function when it is launched, or interpret it where Triton does."""
    return triton.jit(function) if knobs.runtime.interpret else Kernel(function)
