"""What a launch does on the host."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("triton")

import triton.language as tl
from triton.runtime.jit import JITFunction

from fenchel.kernels.triton.kernel import Kernel

CONSTANT: tl.constexpr = tl.constexpr(3)


def _tripled(size: tl.constexpr):
    return tl.arange(0, size * CONSTANT)


tripled = JITFunction(_tripled)


def _numbers(size: tl.constexpr) -> None:
    tripled(size)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel that is launched without a device; `compared` holds the constants of every launch."""
    compared = []

    def launch(self: JITFunction, *_args: Any, **_options: Any) -> None:
        _ = self.cache_key  # compiling makes it, and notes the constants
        compared.append([name for name, _ in self.used_global_vals])

    monkeypatch.setattr(JITFunction, "run", launch)
    monkeypatch.setattr(tripled, "hash", None)
    kernel = Kernel(_numbers)
    kernel.compared = compared
    return kernel


def test_a_launch_compares_constants_only_once(launched: Any) -> None:
    for _ in range(2):
        launched[(1,)](4)
    assert launched.compared == [["CONSTANT"], []]


def test_a_kernel_has_its_key_after_what_it_calls(
    launched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise Triton 3.6 leaves their constants out, unless another kernel has called them before."""
    begun = []
    make = JITFunction.cache_key.fget

    def cache_key(self: JITFunction) -> str:
        if self.hash is None:
            begun.append(self.__name__)
        return make(self)

    monkeypatch.setattr(JITFunction, "cache_key", property(cache_key))
    launched[(1,)](4)
    assert begun == ["_tripled", "_numbers"]
