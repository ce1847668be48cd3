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
from typing import Any

import torch
from torch import Tensor

from fenchel.errors import FenchelError, rule

CPU_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
IMPLEMENTATIONS = ("reference", "cpu")

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

    `"reference"` is plain PyTorch in float64 and runs everywhere; `"cpu"` is compiled with Numba.
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
    record: list[Choice] = []
    token = _record.set(record)
    try:
        function(*args, **kwargs)
    finally:
        _record.reset(token)
    return record


def kernel(module: str, operator: str, tensor: Tensor) -> Callable[..., Any]:
    """The function that implements `operator` for `tensor`, in `kernels/<choice>/<module>`."""
    choice = _choose(module, operator, tensor.device.type, tensor.dtype, _forced.get())
    record = _record.get()
    if record is not None:
        record.append(choice)
    return getattr(_home(choice.implementation, module), operator)


@cache
def _choose(
    module: str, operator: str, device: str, dtype: torch.dtype, forced: str | None
) -> Choice:
    obstacle = _cpu_obstacle(module, operator, device, dtype)
    if forced == "cpu" and obstacle is not None:
        raise FenchelError(f"{operator} cannot run on the implementation 'cpu': {obstacle}")
    if forced is not None:
        return Choice(operator, forced, "forced by fenchel.implementation")
    if obstacle is not None:
        return Choice(operator, "reference", obstacle)
    return Choice(operator, "cpu", f"a CPU tensor of {dtype} runs on the Numba kernel")


def _cpu_obstacle(module: str, operator: str, device: str, dtype: torch.dtype) -> str | None:
    if device != "cpu":
        return f"Numba kernels need a CPU tensor, this one is on {device}"
    if dtype not in CPU_DTYPES:
        return f"Numba kernels have no code for {dtype}"
    if not hasattr(_home("cpu", module), operator):
        return f"there is no Numba kernel for {operator}"
    return None


@cache
def _home(implementation: str, module: str) -> ModuleType | None:
    name = f"fenchel.kernels.{implementation}.{module}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
