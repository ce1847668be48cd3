"""A call like an earlier one is its launch alone."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.kernels.interpreted import defining_kernels
from tests.kernels.recorded import STREAM, Compiled, as_if_on, pretend_device

with defining_kernels():
    import triton.language as tl

    from fenchel.kernels.triton.launch import kernel as kernel_module
    from fenchel.kernels.triton.launch import replay
    from fenchel.kernels.triton.launch.kernel import Kernel


def _copies(values, out, number, SIZE: tl.constexpr) -> None:
    pass


class Decided:
    """A function that counts its decisions; `how` is what it does with its tensors."""

    def __init__(self, how: Callable[..., Any]) -> None:
        self.times, self.how, self.kernel = 0, how, Kernel(_copies)
        self.__name__ = self.__qualname__ = "decided"

    def __call__(self, values: Tensor, number: float = 1.5, other: Tensor | None = None) -> Any:
        self.times += 1
        return self.how(self.kernel[(1,)], values, number, other)


def plainly(launch: Any, values: Tensor, number: float, _other: Tensor | None) -> Tensor:
    out = torch.empty_like(values)
    launch(values, out, number, SIZE=8)
    return out


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    known = pretend_device(monkeypatch)
    monkeypatch.setattr(replay, "driver", kernel_module.driver)
    return known


def test_a_call_like_an_earlier_one_is_its_launch(compiled: Compiled) -> None:
    decided = Decided(plainly)
    call = replay.replayed(decided)
    x = torch.randn(3, 4).T
    first = call(x)
    compiled.started.clear()
    y = torch.randn(3, 4).T
    again = call(y)
    assert decided.times == 1
    assert again.stride() == first.stride() == (1, 4)
    assert (again.shape, again.dtype) == (first.shape, first.dtype)
    ((*_, values, out, number, size),) = compiled.started
    assert (values, out, number, size) == (y.data_ptr(), again.data_ptr(), 1.5, 8)


@pytest.mark.parametrize(
    ("values", "number"),
    [
        (torch.randn(4, 3).T, 1.5),
        (torch.randn(4, 4)[:3], 1.5),
        (torch.randn(3, 4).double(), 1.5),
        (torch.randn(13)[1:].view(3, 4), 1.5),
        (torch.randn(3, 4), 2.0),
        (torch.randn(3, 4), 2),
    ],
)
def test_another_call_is_decided_anew(values: Tensor, number: float) -> None:
    decided = Decided(plainly)
    call = replay.replayed(decided)
    for _ in range(2):
        call(torch.randn(3, 4))
        call(values, number)
    assert decided.times == 2


def twice(launch: Any, values: Tensor, number: float, _other: Tensor | None) -> Tensor:
    out = torch.empty_like(values)
    launch(values, out, number, SIZE=8)
    launch(values, out, number, SIZE=16)
    return out


def from_a_copy(launch: Any, values: Tensor, number: float, _other: Tensor | None) -> Tensor:
    out = torch.empty_like(values)
    launch(values.clone(), out, number, SIZE=8)
    return out


def to_a_copy(launch: Any, values: Tensor, number: float, _other: Tensor | None) -> Tensor:
    out, written = torch.empty_like(values), torch.empty_like(values)
    launch(values, written, number, SIZE=8)
    return out.copy_(written)


def in_place(launch: Any, values: Tensor, number: float, _other: Tensor | None) -> Tensor:
    launch(values, values, number, SIZE=8)
    return values


def nothing(_launch: Any, values: Tensor, _number: float, _other: Tensor | None) -> Tensor:
    return torch.empty_like(values)


@pytest.mark.parametrize("how", [twice, from_a_copy, to_a_copy, in_place, nothing])
def test_what_is_more_than_one_launch_is_always_decided(how: Callable[..., Any]) -> None:
    decided = Decided(how)
    call = replay.replayed(decided)
    for _ in range(3):
        call(torch.randn(3, 4))
    assert decided.times == 3


def two_results(launch: Any, values: Tensor, number: float, other: Tensor | None) -> Any:
    out = values.new_empty(3, dtype=torch.float64)
    assert other is not None
    launch(other.unsqueeze(-1), out, number, SIZE=8)
    return (out,)


def test_results_may_be_a_tuple_and_arguments_may_be_viewed(compiled: Compiled) -> None:
    decided = Decided(two_results)
    call = replay.replayed(decided)
    for _ in range(2):
        values, other = torch.randn(3, 4), torch.randn(3)
        (out,) = call(values, 1.5, other)
    assert decided.times == 1
    assert (out.shape, out.dtype) == ((3,), torch.float64)
    assert compiled.started[-1][-4:-2] == (other.data_ptr(), out.data_ptr())


def test_it_can_be_made_to_decide_anew_and_keeps_no_tensor() -> None:
    decided = Decided(plainly)
    call = replay.replayed(decided)
    x = torch.randn(3, 4)
    kept = weakref.ref(x), weakref.ref(call(x))
    del x
    assert [each() for each in kept] == [None, None]
    replay.forget()
    call(torch.randn(3, 4))
    assert decided.times == 2


def test_a_call_within_a_call_counts_as_its_launches() -> None:
    inner = replay.replayed(Decided(plainly))

    def chained(_launch: Any, values: Tensor, number: float, _other: Tensor | None) -> Tensor:
        return inner(inner(values, number), number)

    inner(torch.randn(3, 4))
    decided = Decided(chained)
    call = replay.replayed(decided)
    for _ in range(2):
        call(torch.randn(3, 4))
    assert decided.times == 2


def test_a_call_runs_on_the_device_of_its_tensors(compiled: Compiled) -> None:
    decided = Decided(plainly)
    call = replay.replayed(decided)
    for device in (1, 0, 1):
        call(as_if_on(device, torch.randn(3, 4)))
    assert compiled.devices == [1, 0]
    assert decided.times == 2
    assert [started[3] for started in compiled.started] == [STREAM + 1]


def test_what_is_named_or_no_plain_tensor_is_decided() -> None:
    class Own(Tensor):
        pass

    decided = Decided(plainly)
    call = replay.replayed(decided)
    for _ in range(2):
        call(torch.randn(3, 4), number=2.0)
        call(torch.randn(3, 4).as_subclass(Own))
    assert decided.times == 4
