"""What the tests of Triton's kernels share; `interpreted.py` says which."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches go to the interpreter where there is no GPU."""
    if not torch.cuda.is_available():
        monkeypatch.setenv("TRITON_INTERPRET", "1")
