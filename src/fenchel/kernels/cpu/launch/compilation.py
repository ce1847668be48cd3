"""Kernels compiled at their first use, once a machine: the compiled code is kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from numba import cfunc, njit, types

from fenchel.kernels.cpu.launch.memory import Arguments

# `scalar` code keeps the order of its operations (compensated sums, rounding tricks); `reducing` code
# may reorder its own sums, which is what lets its loops use vectors. Both are inlined, and so is
# `sequential` code. `outlined` code, which is `reducing`, stays a function and takes no functions:
# these would be addresses, which cannot be stored on disk. All say so, for Numba hands it down.
_inside = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
scalar: Any = njit(fastmath={"contract"}, forceinline=True, **_inside)
reducing: Any = njit(fastmath={"contract", "reassoc", "nsz"}, forceinline=True, **_inside)
sequential: Any = scalar
outlined: Any = njit(fastmath={"contract", "reassoc", "nsz"}, forceinline=False, **_inside)

SCALARS = {torch.float32: types.float32, torch.float64: types.float64}


@cache
def _sources() -> str:
    """A digest of every file that may change what a kernel compiles to; constants are the reference's."""
    digest, kernels = hashlib.sha256(), Path(__file__).parents[2]
    for package in ("cpu", "reference"):
        for path in sorted((kernels / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Kernel:
    """A function of one argument block, compiled for a scalar type when that is first needed."""

    _compiling = Lock()

    def __init__(self, function: Callable[[Arguments], None]) -> None:
        self.function = function
        self._compiled: dict[torch.dtype, Any] = {}

    def address(self, dtype: torch.dtype) -> int:
        """The address of the machine code `void(void *block)` for rows of `dtype`."""
        compiled = self._compiled.get(dtype)
        if compiled is None:
            with self._compiling:
                compiled = self._compiled.get(dtype) or self._compile(dtype)
                self._compiled[dtype] = compiled
        return compiled.address

    def _compile(self, dtype: torch.dtype) -> Any:
        signature = types.void(Arguments(SCALARS[dtype], _sources()))
        try:
            return cfunc(signature, cache=True, error_model="numpy")(self.function)
        except RuntimeError as error:
            if "no locator" not in str(error):
                raise
            # Neither this folder nor the user's cache can be written: compile in every process.
            return cfunc(signature, error_model="numpy")(self.function)
