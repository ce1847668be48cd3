"""A device that notes what is launched: kernels are neither compiled nor run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.kernels.interpreted import defining_kernels

with defining_kernels():
    from triton.compiler import CompiledKernel
    from triton.runtime.jit import JITFunction

    from fenchel.kernels.triton.launch import kernel as kernel_module

STREAM, FUNCTION, METADATA = 7, 8, 9


class Compiled(CompiledKernel):
    """A kernel for all: `searched` has the constants that Triton compared when it was asked for one,
    `started` the arguments of the launches for which it was not.
    """

    function, packed_metadata, module = FUNCTION, METADATA, None

    def __init__(self) -> None:
        self.searched: list[list[str]] = []
        self.started: list[tuple[Any, ...]] = []

    def run(self, *args: Any) -> None:
        self.started.append(args)


def pretend_device(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """Whatever is launched is the kernel that is returned."""
    compiled = Compiled()

    def search(self: JITFunction, *_args: Any, **_options: Any) -> Compiled:
        _ = self.cache_key  # compiling makes it, and notes the constants
        compiled.searched.append([name for name, _ in self.used_global_vals])
        return compiled

    monkeypatch.setattr(JITFunction, "run", search)
    device = SimpleNamespace(get_current_device=lambda: 0, get_current_stream=lambda _: STREAM)
    monkeypatch.setattr(kernel_module, "driver", SimpleNamespace(active=device))
    return compiled
