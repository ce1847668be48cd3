"""What a launch does on the host."""

from __future__ import annotations

import weakref
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from tests.kernels.interpreted import defining_kernels
from tests.kernels.recorded import (
    FUNCTION,
    METADATA,
    STREAM,
    Compiled,
    as_if_on,
    pretend_device,
)

with defining_kernels():
    import triton.language as tl
    from triton import knobs
    from triton.runtime.jit import JITFunction
    from triton.tools.tensor_descriptor import TensorDescriptor

    from fenchel.kernels.triton.launch import kernel as kernel_module
    from fenchel.kernels.triton.launch.addressing import Strides
    from fenchel.kernels.triton.launch.kernel import Kernel

CONSTANT: tl.constexpr = tl.constexpr(3)
STEPS = Strides(0, 0, 4, 1)


def _tripled(size: tl.constexpr):
    return tl.arange(0, size * CONSTANT)


tripled = JITFunction(_tripled)


def _numbers(size: tl.constexpr) -> None:
    tripled(size)


def _copies(out, values, number, steps, SIZE: tl.constexpr, EVEN: tl.constexpr) -> None:
    pass


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    monkeypatch.setattr(tripled, "hash", None)
    return pretend_device(monkeypatch)


def test_a_launch_compares_constants_only_once(compiled: Compiled) -> None:
    launched = Kernel(_numbers)
    for size in (4, 8):
        launched[(1,)](size)
    assert compiled.searched == [["CONSTANT"], []]


def test_a_kernel_has_its_key_after_what_it_calls(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise Triton 3.6 leaves their constants out, unless another kernel has called them before."""
    begun = []
    make: Any = JITFunction.cache_key.fget

    def cache_key(self: JITFunction) -> str:
        if self.hash is None:
            begun.append(self.__name__)
        return make(self)

    monkeypatch.setattr(JITFunction, "cache_key", property(cache_key))
    Kernel(_numbers)[(1,)](4)
    assert compiled.searched
    assert begun == ["_tripled", "_numbers"]


def launch_copies(
    launched: Kernel,
    *,
    grid: tuple[int, ...] = (2, 3),
    number: float = 1.5,
    steps: Strides = STEPS,
    size: int = 8,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    out = torch.empty(4, 4) if out is None else out
    values = torch.empty(4, 4)
    launched[grid](out, values, number, steps, EVEN=True, SIZE=size)
    return out, values


def test_a_launch_like_an_earlier_one_asks_triton_for_nothing(compiled: Compiled) -> None:
    launched = Kernel(_copies)
    launch_copies(launched)
    out, values = launch_copies(launched)
    assert len(compiled.searched) == 1
    places = out.data_ptr(), values.data_ptr()
    how = 2, 3, 1, STREAM, FUNCTION, METADATA, None, None, None
    assert compiled.started == [(*how, *places, 1.5, STEPS, 8, True)]


@pytest.mark.parametrize(
    "other",
    [
        {"grid": (3, 3)},
        {"number": 2},
        {"number": True},
        {"steps": Strides(0, 0, 16, 1)},
        {"size": 16},
        {"out": torch.empty(4, 4, dtype=torch.float64)},
        {"out": torch.empty(17)[1:].view(4, 4)},
    ],
    ids=["grid", "number", "truth", "steps", "size", "dtype", "alignment"],
)
def test_another_launch_asks_again(compiled: Compiled, other: dict[str, Any]) -> None:
    launched = Kernel(_copies)
    same: dict[str, Any] = {"number": 1}
    launch_copies(launched, **same)
    launch_copies(launched, **same | other)
    launch_copies(launched, **same)
    assert len(compiled.searched) == 2


def test_a_number_is_not_its_equal_of_another_type(compiled: Compiled) -> None:
    launched = Kernel(_copies)
    for number in (1, 1.0, True):
        launch_copies(launched, number=number)
    assert len(compiled.searched) == 3


def test_a_launch_runs_on_the_device_of_its_tensors(compiled: Compiled) -> None:
    """Triton itself compiles for the current device, and launches on its stream."""
    launched = Kernel(_copies)
    for device in (1, 0, 1):
        launch_copies(launched, out=as_if_on(device, torch.empty(4, 4)))
    assert compiled.devices == [1, 0]
    assert [started[3] for started in compiled.started] == [STREAM + 1]
    described = TensorDescriptor.from_tensor(as_if_on(1, torch.empty(4, 4)), [2, 4])
    launched[(1,)](None, described, 1.5, STEPS, EVEN=True, SIZE=8)
    launched.add_pre_run_hook(print)
    launch_copies(launched, out=as_if_on(1, torch.empty(4, 4)))
    assert compiled.devices == [1, 0, 1, 1]


def test_who_watches_launches_sees_them_all(compiled: Compiled) -> None:
    launched, hook = Kernel(_copies), cast(Any, knobs.runtime.launch_enter_hook)
    launch_copies(launched)
    hook.add(print)
    try:
        launch_copies(launched)
    finally:
        hook.remove(print)
    launched.add_pre_run_hook(print)
    launch_copies(launched)
    assert len(compiled.searched) == 3


def test_what_is_remembered_is_bounded_and_keeps_no_tensor(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_module, "MAX_LAUNCHES", 2)
    launched = Kernel(_copies)
    for size in (1, 2, 4):
        out, values = launch_copies(launched, size=size)
    assert len(launched.launches) == 1
    kept = weakref.ref(out), weakref.ref(values)
    del out, values
    assert [each() for each in kept] == [None, None]
    assert len(compiled.searched) == 3
