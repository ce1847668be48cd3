"""Kernels run on the threads that torch already has.

torch's intra-operator threads are those of its OpenMP library. A kernel handed to that library's
`GOMP_parallel` runs on the very same threads, so nothing is oversubscribed and
`torch.set_num_threads` governs. Where the library does not offer that function (macOS, Windows)
plain Python threads run the same machine code; ctypes releases the interpreter's lock.
The pool does not survive a fork, so a forked child runs its kernels serially.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.memory import ROWS_LEFT

ELEMENTS_PER_THREAD = 16384
CHUNKS_PER_THREAD = 8

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _openmp_parallel() -> Callable | None:
    """`GOMP_parallel(function, data, threads, flags)` of the OpenMP library torch uses, if any."""
    bundled = sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*"))
    libraries: list[Any] = [*map(str, bundled), None]
    for library in libraries:
        try:
            parallel = ctypes.CDLL(library).GOMP_parallel
        except (OSError, AttributeError, TypeError):
            continue
        parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        parallel.restype = None
        return parallel
    return None


def _thread_count(rows: int, columns: int) -> int:
    if _forked:
        return 1
    worth_starting = rows * columns // ELEMENTS_PER_THREAD
    return max(1, min(torch.get_num_threads(), worth_starting, rows))


def launch(
    kernel: Kernel,
    rows: Tensor,
    alpha: float | Tensor,
    workspace: int,
    *arguments: Tensor | int,
    together: int = 1,
) -> int:
    """Run `kernel` over the rows of a matrix, with `alpha` a number or one float64 a row.

    Returns how many rows it has left to another kernel.

    `arguments` are the tensors and numbers it reads and writes, `workspace` how many numbers of
    scratch memory each of its threads needs, `together` how many rows it treats at a time.
    """
    count, columns = rows.shape
    if rows.numel() == 0:
        return 0
    if isinstance(alpha, Tensor):
        place, each_row = alpha.data_ptr(), int(alpha.numel() > 1)
    else:
        number = ctypes.c_double(alpha)
        place, each_row = ctypes.addressof(number), 0
    threads = _thread_count(count, columns)
    chunk = count if threads == 1 else max(1, count // (threads * CHUNKS_PER_THREAD))
    chunk = (chunk + together - 1) // together * together
    scratch = rows.new_empty(threads * workspace)
    words = [0, 0, 0, count, chunk, columns, place, each_row, scratch.data_ptr(), workspace]
    words += [a.data_ptr() if isinstance(a, Tensor) else a for a in arguments]
    block = array("q", words)
    _run(kernel.address(rows.dtype), block.buffer_info()[0], threads)
    return block[ROWS_LEFT]


@cache
def _function(address: int) -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


def _run(address: int, data: int, threads: int) -> None:
    parallel = _openmp_parallel()
    if threads > 1 and parallel is not None:
        parallel(address, data, threads, 0)
        return
    call = _function(address)
    helpers = [Thread(target=call, args=(data,)) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    call(data)
    for helper in helpers:
        helper.join()
