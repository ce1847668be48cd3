"""Launches of kernels on the threads of torch, and how these threads share the rows.

torch's intra-operator threads are those of its OpenMP library. A kernel that is passed to this library's
`GOMP_parallel` runs on the same threads, so cores are not oversubscribed and `torch.set_num_threads`
applies. Where the library lacks that function (macOS, Windows), Python threads run the same machine
code; ctypes releases the interpreter's lock. The pool does not survive a fork, so a forked child runs
kernels on one thread.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Thread, local
from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel, MachineCode, inlined
from fenchel.kernels.cpu.launch.memory import (
    CHUNK,
    COLUMNS,
    PARAMETER,
    PARAMETER_STRIDE,
    ROWS,
    ROWS_CLAIMED,
    ROWS_UNSOLVED,
    TENSORS,
    THREADS_STARTED,
    WORKSPACE,
    WORKSPACE_SIZE,
    advance,
    claim,
    floats_at,
    integer_at,
    load,
    rows_at,
)

ELEMENTS_PER_THREAD = 16384
CHUNKS_PER_THREAD = 8
SCRATCH_BYTES = 65536  # a new tensor of this size takes longer than many kernels
SCRATCH_ALIGNMENT = 64  # bytes of a cache line, and of the widest vector

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _openmp_parallel() -> Callable | None:
    """`GOMP_parallel(function, data, threads, flags)` of the OpenMP library of torch, if it has one."""
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


class _Scratch(local):
    """Scratch memory of a Python thread for kernels that run on it alone and need little."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(SCRATCH_BYTES + SCRATCH_ALIGNMENT)
        start = ctypes.addressof(self._memory)
        self.address = start + -start % SCRATCH_ALIGNMENT


_scratch = _Scratch()


def launch(
    kernel: Kernel,
    rows: Tensor,
    parameter: float | Tensor,
    workspace: int,
    *arguments: Tensor | int,
    together: int = 1,
    chunk: int | None = None,
) -> int:
    """Run `kernel` over the rows of a matrix; returns the number of rows it has not solved.

    `parameter` is a number, or a tensor with one float64 per row. `arguments` are the tensors and
    integers that the kernel reads and writes, `workspace` is the size of each thread's scratch memory in
    numbers, `together` the number of rows that are solved together, and `chunk` the number of rows that a
    thread claims at a time.
    """
    count, columns = rows.shape
    elements = count * columns
    if elements == 0:
        return 0
    if isinstance(parameter, Tensor):
        place, each_row = parameter.data_ptr(), int(parameter.numel() > 1)
    else:
        number = ctypes.c_double(parameter)
        place, each_row = ctypes.addressof(number), 0
    threads = 1
    if elements >= 2 * ELEMENTS_PER_THREAD and not _forked:
        threads = max(1, min(torch.get_num_threads(), elements // ELEMENTS_PER_THREAD, count))
    if chunk is None:
        chunk = count if threads == 1 else max(1, count // (threads * CHUNKS_PER_THREAD))
    chunk = (chunk + together - 1) // together * together
    if threads == 1 and workspace * rows.element_size() <= SCRATCH_BYTES:
        scratch = _scratch.address
    else:
        memory = rows.new_empty(threads * workspace)
        scratch = memory.data_ptr()
    words = [0, 0, 0, count, chunk, columns, place, each_row, scratch, workspace]
    words += [each.data_ptr() if isinstance(each, Tensor) else each for each in arguments]
    block = array("q", words)
    code = kernel.compiled.get(rows.dtype) or kernel.compile(rows.dtype)
    if threads == 1:
        code.call(block.buffer_info()[0])
    else:
        _run_on_threads(code, block.buffer_info()[0], threads)
    return block[ROWS_UNSOLVED]


def _run_on_threads(code: MachineCode, data: int, threads: int) -> None:
    parallel = _openmp_parallel()
    if parallel is not None:
        parallel(code.address, data, threads, 0)
        return
    helpers = [Thread(target=code.call, args=(data,)) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    code.call(data)
    for helper in helpers:
        helper.join()


@inlined
def own_workspace(arguments):
    """The scratch memory of this thread."""
    thread = claim(arguments, THREADS_STARTED, 1)
    scratch = thread * integer_at(arguments, WORKSPACE_SIZE)
    return advance(rows_at(arguments, WORKSPACE), scratch)


@inlined
def work_of(arguments):
    """(number of rows, rows claimed at once, columns, workspace of this thread)"""
    rows, chunk = integer_at(arguments, ROWS), integer_at(arguments, CHUNK)
    return rows, chunk, integer_at(arguments, COLUMNS), own_workspace(arguments)


@inlined
def for_each_row(arguments, do_row):
    """Call `do_row(arguments, row, parameter, columns, workspace)` for all rows this thread claims."""
    rows, chunk, columns, workspace = work_of(arguments)
    start = claim(arguments, ROWS_CLAIMED, chunk)
    while start < rows:
        for row in range(start, min(start + chunk, rows)):
            do_row(arguments, row, parameter_of(arguments, row), columns, workspace)
        start = claim(arguments, ROWS_CLAIMED, chunk)


@inlined
def parameter_of(arguments, row):
    """The parameter of a row: alpha, k, strength, …"""
    return load(floats_at(arguments, PARAMETER), row * integer_at(arguments, PARAMETER_STRIDE))


@inlined
def is_unsolved(arguments, row):
    """Whether an earlier kernel has left this row, as the third tensor says; true without that tensor."""
    listed = integer_at(arguments, TENSORS + 2) != 0
    return not listed or load(floats_at(arguments, TENSORS + 2), row) > 0.0


@inlined
def matrix_row(arguments, position, row, columns):
    """A pointer to a row of the matrix in argument `position` of the kernel."""
    return advance(rows_at(arguments, TENSORS + position), row * columns)


@inlined
def gradient_rows(arguments, row, columns):
    """A row of each of the first three matrices: the incoming gradient, p, and the output."""
    return (
        matrix_row(arguments, 0, row, columns),
        matrix_row(arguments, 1, row, columns),
        matrix_row(arguments, 2, row, columns),
    )
