"""Which implementation of an operator runs, and why.

The choice depends on the device and the dtype alone. A person can ask for it (`explain`) or force it
(`implementation`); an implementation that cannot run says why instead of giving way to another.
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
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fenchel.errors import FenchelError, rule

CPU_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
GPU_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
IMPLEMENTATIONS = ("reference", "cpu", "triton")

_forced: ContextVar[str | None] = ContextVar("forced implementation", default=None)
_record: ContextVar[list[Choice] | None] = ContextVar("recorded choices", default=None)


@dataclass(frozen=True)
class Choice:
    """One operator that ran: where, and the reason."""

    operator: str
    implementation: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.implementation} ({self.reason})"


@contextmanager
def implementation(name: str) -> Iterator[None]:
    """Force one implementation inside the `with` block.

    `"reference"` is plain PyTorch in float64 and runs everywhere; `"cpu"` is compiled with Numba,
    `"triton"` with Triton for CUDA devices.
    A call that the forced implementation cannot serve raises `FenchelError` with the reason.

    >>> import torch, fenchel
    >>> with fenchel.implementation("reference"):
    ...     fenchel.sparsemax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    if name not in IMPLEMENTATIONS:
        raise rule("implementation must be known", expected=f"one of {IMPLEMENTATIONS}", got=name)
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Choice]:
    """Run `function(*args, **kwargs)` and say which implementation served each operator, and why.

    >>> import torch, fenchel
    >>> for choice in fenchel.explain(fenchel.entmax, torch.randn(2, 5), alpha=1.3):
    ...     print(choice)
    entmax: cpu (a CPU tensor of torch.float32 runs on the Numba kernel)
    """
    if not callable(function):
        expected, got = "a callable and its arguments", type(function).__name__
        raise rule("explain runs a function", expected=expected, got=got)
    record: list[Choice] = []
    token = _record.set(record)
    try:
        function(*args, **kwargs)
    finally:
        _record.reset(token)
    return record


class Kernel(NamedTuple):
    """A function that implements an operator.

    Most see contiguous rows (`kernels/rows.py`); a strided one takes the operator's own arguments.
    """

    function: Callable[..., Any]
    strided: bool


def kernel(module: str, operator: str, tensor: Tensor) -> Kernel:
    """The implementation of `operator` for `tensor`, from `kernels/<choice>/<module>`."""
    choice, found = _find(module, operator, tensor.device, tensor.dtype, _forced.get())
    record = _record.get()
    if record is not None:
        record.append(choice)
    return found


def chosen(module: str, operator: str, tensor: Tensor) -> str:
    """The name of the implementation of `operator` that would run."""
    choice, _ = _find(module, operator, tensor.device, tensor.dtype, _forced.get())
    return choice.implementation


@cache
def _find(
    module: str, operator: str, device: torch.device, dtype: torch.dtype, forced: str | None
) -> tuple[Choice, Kernel]:
    choice = _choose(module, operator, device.type, dtype, forced)
    function = getattr(_home(choice.implementation, module), operator)
    return choice, Kernel(function, strided=choice.implementation == "triton")


def _choose(
    module: str, operator: str, device: str, dtype: torch.dtype, forced: str | None
) -> Choice:
    fast = "triton" if forced == "triton" or (forced is None and device == "cuda") else "cpu"
    obstacle = _obstacle(fast, module, operator, device, dtype)
    if forced == fast and obstacle is not None:
        raise FenchelError(f"{operator} cannot run on the implementation '{fast}': {obstacle}")
    if forced is not None:
        return Choice(operator, forced, "forced by fenchel.implementation")
    if obstacle is not None:
        return Choice(operator, "reference", obstacle)
    compiler = "Numba" if fast == "cpu" else "Triton"
    return Choice(
        operator, fast, f"a {device.upper()} tensor of {dtype} runs on the {compiler} kernel"
    )


def _obstacle(fast: str, module: str, operator: str, device: str, dtype: torch.dtype) -> str | None:
    compiler, home, dtypes = {
        "cpu": ("Numba", "cpu", CPU_DTYPES),
        "triton": ("Triton", "cuda", GPU_DTYPES),
    }[fast]
    if device != home:
        return f"{compiler} kernels need a {home.upper()} tensor, this one is on {device}"
    if dtype not in dtypes:
        return f"{compiler} kernels have no code for {dtype}"
    if fast == "triton" and importlib.util.find_spec("triton") is None:
        return "the package triton is not installed"
    if not hasattr(_home(fast, module), operator):
        return f"there is no {compiler} kernel for {operator}"
    return None


@cache
def _home(implementation: str, module: str) -> ModuleType | None:
    name = f"fenchel.kernels.{implementation}.{module}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
