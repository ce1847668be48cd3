"""Which backend computes an operator, and why.

The choice depends on the device and the dtype alone. `explain` reports it, `implementation` forces it. A
forced implementation that cannot run raises with the reason; nothing falls back to another.

Every function that `kernel` returns takes the arguments of its operator, whatever the backend: `adapt`
does this for the backends that take contiguous rows, or that return more than the operator does.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from fenchel.errors import FenchelError, unknown

CPU_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
GPU_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
IMPLEMENTATIONS = ("reference", "cpu", "triton")
COMPILERS = {"cpu": "Numba", "triton": "Triton"}
TAKE_ROWS = ("reference", "cpu")  # the others take tensors with any strides

Function = Callable[..., Any]
Adapt = Callable[[Function, bool], Function]  # of a backend's function, and whether it takes rows

_forced: ContextVar[str | None] = ContextVar("forced implementation", default=None)
_record: ContextVar[list[Choice] | None] = ContextVar("recorded choices", default=None)


@dataclass(frozen=True)
class Choice:
    """An operator that ran, its implementation and the reason for it."""

    operator: str
    implementation: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.implementation} ({self.reason})"


@contextmanager
def implementation(name: str) -> Iterator[None]:
    """Force one implementation inside the `with` block.

    `"reference"` is plain PyTorch in float64 and runs everywhere; `"cpu"` is compiled with Numba,
    `"triton"` with Triton for CUDA devices. A call that the forced implementation cannot compute raises
    `FenchelError` with the reason.

    >>> import torch, fenchel
    >>> with fenchel.implementation("reference"):
    ...     fenchel.sparsemax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    if name not in IMPLEMENTATIONS:
        raise unknown("implementation", name, IMPLEMENTATIONS)
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Choice]:
    """Run `function(*args, **kwargs)` and list the implementation of each operator, and why it ran.

    >>> import torch, fenchel
    >>> for choice in fenchel.explain(fenchel.entmax, torch.randn(2, 5), alpha=1.3):
    ...     print(choice)
    entmax: cpu (a CPU tensor of torch.float32 runs on the Numba kernel)
    """
    if not callable(function):
        raise FenchelError(f"function must be callable, got {type(function).__name__}")
    record: list[Choice] = []
    token = _record.set(record)
    try:
        function(*args, **kwargs)
    finally:
        _record.reset(token)
    return record


def kernel(home: str, name: str, tensor: Tensor, adapt: Adapt) -> Function:
    """The function `name` of `kernels/<backend>/<home>` for a tensor, with the operator's arguments."""
    choice, function = _find(home, name, tensor.device, tensor.dtype, _forced.get(), adapt)
    record = _record.get()
    if record is not None:
        record.append(choice)
    return function


def extension(home: str, name: str, tensor: Tensor) -> Function | None:
    """An optional function of the backend that runs for a tensor; None if it has no such function."""
    return _find_extension(home, name, tensor.device, tensor.dtype, _forced.get())


def as_it_is(function: Function, takes_rows: bool) -> Function:
    """For operators whose arguments are the same in all backends."""
    return function


@cache
def _find(
    home: str,
    name: str,
    device: torch.device,
    dtype: torch.dtype,
    forced: str | None,
    adapt: Adapt,
) -> tuple[Choice, Function]:
    choice = _choose(home, name, device.type, dtype, forced)
    function = getattr(_home(choice.implementation, home), name)
    return choice, adapt(function, choice.implementation in TAKE_ROWS)


@cache
def _find_extension(
    home: str, name: str, device: torch.device, dtype: torch.dtype, forced: str | None
) -> Function | None:
    backend = forced or ("triton" if device.type == "cuda" else "cpu")
    if backend != "reference" and _obstacle(backend, device.type, dtype) is not None:
        backend = "reference"
    return getattr(_home(backend, home), name, None)


def _choose(home: str, name: str, device: str, dtype: torch.dtype, forced: str | None) -> Choice:
    backend = "triton" if forced == "triton" or (forced is None and device == "cuda") else "cpu"
    obstacle = _obstacle(backend, device, dtype)
    if obstacle is None and not hasattr(_home(backend, home), name):
        obstacle = f"there is no {COMPILERS[backend]} kernel for {name}"
    if forced == backend and obstacle is not None:
        raise FenchelError(f"{name} cannot run on the implementation '{backend}': {obstacle}")
    if forced is not None:
        return Choice(name, forced, "forced by fenchel.implementation")
    if obstacle is not None:
        return Choice(name, "reference", obstacle)
    reason = f"a {device.upper()} tensor of {dtype} runs on the {COMPILERS[backend]} kernel"
    return Choice(name, backend, reason)


def _obstacle(backend: str, device: str, dtype: torch.dtype) -> str | None:
    """Why a backend cannot run any function for a device and a dtype."""
    compiler = COMPILERS[backend]
    needed, dtypes = ("cpu", CPU_DTYPES) if backend == "cpu" else ("cuda", GPU_DTYPES)
    if device != needed:
        return f"{compiler} kernels need a {needed.upper()} tensor, this one is on {device}"
    if dtype not in dtypes:
        return f"{compiler} kernels have no code for {dtype}"
    if backend == "triton" and importlib.util.find_spec("triton") is None:
        return "the package triton is not installed"
    return None


@cache
def _home(backend: str, home: str) -> ModuleType | None:
    name = f"fenchel.kernels.{backend}.{home}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
