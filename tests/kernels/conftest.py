"""What the tests of Triton's kernels share; `interpreted.py` says which."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches go to the interpreter where there is no GPU."""
    if not torch.cuda.is_available():
        monkeypatch.setenv("TRITON_INTERPRET", "1")


@pytest.fixture(autouse=True)
def decided_anew() -> Iterator[None]:
    """Tests change what the launches of a GPU are decided by."""
    if not torch.cuda.is_available():
        yield
        return
    from fenchel.kernels.triton.launch.replay import forget

    forget()
    yield
    forget()


@pytest.fixture(params=["tile", "groups"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which kernels take a row: those that hold it, or those that stream over it."""
    if request.param == "groups":
        from tests.kernels.small_kernels import stream_short_rows

        stream_short_rows(monkeypatch)
    return request.param
