"""Where a law is tested: on every implementation, and on a GPU with whatever serves it there.

A test says where it runs by a parameter or fixture named `implementation`. For `GPU` the tensors that
it makes are made on the device (`tests/conftest.py` sees to that) and the library chooses for itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
import torch
import torch.overrides
from torch import Tensor

import fenchel

GPU = "cuda"
DEFAULT = "default"
EVERYWHERE = ("reference", "cpu", GPU)

needs_gpu = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
)


def placed(implementation: str, *values: Any, name: str = "") -> Any:
    """A `pytest.param` whose last value is the implementation; one that needs a GPU is marked."""
    marks = needs_gpu if implementation == GPU else ()
    label = f"{name}-{implementation}" if name else implementation
    return pytest.param(*values, implementation, marks=marks, id=label)


def parameters(*names: str) -> list[Any]:
    """The values of `implementation`: those named, or all."""
    return [placed(name) for name in names or EVERYWHERE]


on_every = pytest.mark.parametrize("implementation", parameters())


def device_of(implementation: str | None) -> AbstractContextManager[Any]:
    """Where tensors are made inside the `with` block."""
    return torch.device(GPU) if implementation == GPU else nullcontext()


def traceable(implementation: str) -> AbstractContextManager[Any]:
    """Without the mode that `device_of` is, below which Dynamo cannot trace every transform."""
    return torch.overrides._pop_mode_temporarily() if implementation == GPU else nullcontext()


def running_on(implementation: str) -> AbstractContextManager[None]:
    if implementation in (GPU, DEFAULT):
        return nullcontext()
    return fenchel.implementation(implementation)


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers, the same wherever the test runs."""
    numbers = torch.randn(*shape, dtype=torch.float64, device="cpu")
    return numbers.to(torch.get_default_device(), dtype)


def widest() -> torch.dtype:
    """The widest dtype that the kernels of the device know; wider ones run on the reference."""
    return torch.float32 if torch.get_default_device().type == GPU else torch.float64


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    """The mode is on before its own warning, of a prototype, would be raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
