"""A public call goes down through the layers, and not through many files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
import torch

import fenchel
from tests.test_import_order import ORDER

ROOT = Path(fenchel.__file__).parent


class Call(NamedTuple):
    caller: str | None  # the file of the package that called it, if any
    file: str
    function: str


def calls_of(function: Callable[[], Any]) -> list[Call]:
    """The calls of functions of the package while `function` runs."""
    calls: list[Call] = []

    def record(frame: FrameType, event: str, _: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if event != "call" or not file.is_relative_to(ROOT):
            return
        above = frame.f_back
        while above is not None and not Path(above.f_code.co_filename).is_relative_to(ROOT):
            above = above.f_back
        caller = None
        if above is not None:
            caller = str(Path(above.f_code.co_filename).relative_to(ROOT))
        calls.append(Call(caller, str(file.relative_to(ROOT)), frame.f_code.co_name))

    function()  # compiles and caches what the first call does
    sys.setprofile(record)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def entmax() -> torch.Tensor:
    return fenchel.entmax(torch.ones(4, 64))


def attention() -> torch.Tensor:
    q, k, v = torch.ones(3, 2, 4, 16, 8)
    return fenchel.attention(q, k, v)


def layer(file: str) -> int:
    """The place of its folder in the import order; lower layers come first."""
    return ORDER.index(file.split("/")[0].removesuffix(".py"))


@pytest.mark.parametrize(
    ("function", "operator"), [(entmax, "map_operator"), (attention, "attention")]
)
def test_calls_go_downward(function: Callable[[], Any], operator: str) -> None:
    calls = calls_of(function)
    expected = {"operators/dispatch.py", f"operators/{operator}.py"}
    assert expected <= {call.file for call in calls}
    for call in calls:
        if call.caller is not None:
            assert layer(call.caller) >= layer(call.file), call


# On Python 3.11, every comprehension is a call; later versions have fewer calls.
@pytest.mark.parametrize(
    ("function", "most_calls", "most_files"), [(entmax, 20, 9), (attention, 50, 12)]
)
def test_calls_are_few(function: Callable[[], Any], most_calls: int, most_files: int) -> None:
    calls = calls_of(function)
    listed = "\n".join(f"{call.file} {call.function}" for call in calls)
    assert len(calls) <= most_calls, listed
    assert len({call.file for call in calls}) <= most_files, listed
