"""A device that notes what is launched: kernels are neither compiled nor run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.kernels.interpreted import defining_kernels

with defining_kernels():
    from triton.compiler import CompiledKernel
    from triton.runtime.jit import JITFunction

    from fenchel.kernels.triton.launch import kernel as kernel_module

STREAM, FUNCTION, METADATA = 7, 8, 9  # the stream is that of the first device; others follow


class Compiled(CompiledKernel):
    """A kernel for all: `searched` has the constants that Triton compared when it was asked for one,
    `devices` which was the current one then, `started` the arguments of the launches without a question.
    """

    function, packed_metadata, module = FUNCTION, METADATA, None

    def __init__(self) -> None:
        self.searched: list[list[str]] = []
        self.devices: list[int] = []
        self.started: list[tuple[Any, ...]] = []

    def run(self, *args: Any) -> None:
        self.started.append(args)


def pretend_device(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """Whatever is launched is the kernel that is returned."""
    compiled, current = Compiled(), [0]

    @contextmanager
    def switched(device: int) -> Iterator[None]:
        current.append(current[-1] if device < 0 else device)
        yield
        current.pop()

    def search(self: JITFunction, *_args: Any, **_options: Any) -> Compiled:
        _ = self.cache_key  # compiling makes it, and notes the constants
        compiled.searched.append([name for name, _ in self.used_global_vals])
        compiled.devices.append(current[-1])
        return compiled

    monkeypatch.setattr(JITFunction, "run", search)
    device = SimpleNamespace(
        get_current_device=lambda: current[-1], get_current_stream=lambda device: STREAM + device
    )
    monkeypatch.setattr(kernel_module, "driver", SimpleNamespace(active=device))
    monkeypatch.setattr(torch.cuda, "device", switched)
    return compiled


def as_if_on(device: int, tensor: Tensor) -> Tensor:
    """The tensor, which says that it is there."""
    tensor.get_device = lambda: device
    return tensor
