"""Compilation of kernels at their first use. The compiled code is cached on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_void_p
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from numba import cfunc, njit, types

from fenchel.kernels.cpu.launch.memory import Arguments

# How device functions are compiled:
#   inlined    into their callers, in the order that is written (compensated sums, rounding tricks)
#   reducing   likewise, but sums may be reordered, which lets their loops use vector instructions
#   outlined   sums may be reordered; stays a function, and cannot take functions as arguments, whose
#              addresses would be stored on disk
# All state these options, because Numba passes those of a caller on to the functions it calls.
_inside = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inlined: Any = njit(fastmath={"contract"}, forceinline=True, **_inside)
reducing: Any = njit(fastmath={"contract", "reassoc", "nsz"}, forceinline=True, **_inside)
outlined: Any = njit(fastmath={"contract", "reassoc", "nsz"}, forceinline=False, **_inside)

SCALARS = {torch.float32: types.float32, torch.float64: types.float64}


@cache
def _sources() -> str:
    """A digest of all sources that kernels compile from, with the reference, whose constants they use."""
    digest, kernels = hashlib.sha256(), Path(__file__).parents[2]
    for package in ("cpu", "reference"):
        for path in sorted((kernels / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class MachineCode:
    """`void(void *block)`: its address, and a function that calls it on this thread."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled  # owns the memory of the code
        self.address: int = compiled.address
        self.call: Callable[[int], None] = CFUNCTYPE(None, c_void_p)(self.address)


class Kernel:
    """A function of one argument block, compiled at its first use with each scalar type."""

    _compiling = Lock()

    def __init__(self, function: Callable[[Arguments], None]) -> None:
        self.function = function
        self.compiled: dict[torch.dtype, MachineCode] = {}

    def compile(self, dtype: torch.dtype) -> MachineCode:
        """The machine code for rows of `dtype`, which is also added to `compiled`."""
        with self._compiling:
            code = self.compiled.get(dtype)
            if code is None:
                code = self.compiled[dtype] = MachineCode(self._compile(dtype))
        return code

    def _compile(self, dtype: torch.dtype) -> Any:
        signature = types.void(Arguments(SCALARS[dtype], _sources()))
        try:
            return cfunc(signature, cache=True, error_model="numpy")(self.function)
        except RuntimeError as error:
            if "no locator" not in str(error):
                raise
            # Neither this folder nor the user's cache is writable: compile in every process.
            return cfunc(signature, error_model="numpy")(self.function)
