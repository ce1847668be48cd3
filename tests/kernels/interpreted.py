"""Where the tests run Triton's kernels: on the GPU, or in its interpreter where there is none.

Triton reads TRITON_INTERPRET when a kernel is defined and again when it is launched. So a test module
imports kernels inside `defining_kernels()` and takes its marks from `MARKS`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from tests.kernels.by_halves import reduce_by_halves

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MARKS = [
    pytest.mark.usefixtures("interpreted"),
    # numpy, which interprets, warns where a GPU divides by zero in a lane whose result is not used
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
if DEVICE == "cuda":
    MARKS.append(pytest.mark.gpu)


@contextmanager
def defining_kernels() -> Iterator[None]:
    """What is imported here is interpreted where there is no GPU."""
    if DEVICE == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
        reduce_by_halves()
    yield
    os.environ.pop("TRITON_INTERPRET", None)
