"""Sorting listed columns of a row in descending order: insertion sort for few, else radix sort."""

from __future__ import annotations

from llvmlite import ir
from numba import types

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import (
    INT64,
    advance,
    as_indices,
    as_integers,
    llvm_intrinsic,
    load,
    store,
)
from fenchel.kernels.cpu.shared.columns import fill

INSERTION_SORT_ENTRIES = 48  # up to which insertion sort is used
DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS


@llvm_intrinsic
def _bytes_of(typingctx, number):
    """The size of a number in bytes."""

    def codegen(context, builder, signature, args):
        return INT64(number.bitwidth // 8)

    return types.int64(number), codegen


@llvm_intrinsic
def _descending_key(typingctx, number):
    """An unsigned integer that increases as the number decreases."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(number.bitwidth)
        bits = builder.bitcast(args[0], word)
        sign = builder.ashr(bits, word(number.bitwidth - 1))
        # As a number decreases, the bits of a negative one increase; those of a positive one, except the
        # sign, decrease.
        flip = builder.and_(builder.not_(sign), word((1 << (number.bitwidth - 1)) - 1))
        key = builder.xor(bits, flip)
        return key if number.bitwidth == 64 else builder.zext(key, INT64)

    return types.int64(number), codegen


def sort_workspace(columns: int) -> int:
    """Scratch memory in float64 numbers: two lists of keys, one of indices, and the counts."""
    return 2 * columns + (columns + 1) // 2 + 4 * DIGITS


@inlined
def _insertion_sort(row, places, count):
    for i in range(1, count):
        place = load(places, i)
        value = load(row, place)
        j = i
        while j > 0 and load(row, load(places, j - 1)) < value:
            store(places, j, load(places, j - 1))
            j -= 1
        store(places, j, place)


@inlined
def _count_digits(keys, count, passes, counts):
    fill(counts, passes * DIGITS, 0)
    for i in range(count):
        key = load(keys, i)
        for digit in range(passes):
            at = digit * DIGITS + ((key >> (digit * DIGIT_BITS)) & (DIGITS - 1))
            store(counts, at, load(counts, at) + 1)


@inlined
def _starts(counts, count):
    """Turn the counts of a digit into offsets; False if all numbers have the same digit."""
    start = 0
    for digit in range(DIGITS):
        size = load(counts, digit)
        if size == count:
            return False
        store(counts, digit, start)
        start += size
    return True


@inlined
def _scatter(keys, places, count, shift, starts, new_keys, new_places):
    for i in range(count):
        key = load(keys, i)
        digit = (key >> shift) & (DIGITS - 1)
        at = load(starts, digit)
        store(starts, digit, at + 1)
        store(new_keys, at, key)
        store(new_places, at, load(places, i))


@inlined
def sort_descending(row, places, count, workspace):
    """Sort the columns listed in `places` by their scores, largest first.

    Returns the sorted list, which may be in the workspace.
    """
    if count <= INSERTION_SORT_ENTRIES:
        _insertion_sort(row, places, count)
        return places
    keys, other_keys = as_integers(workspace), as_integers(advance(workspace, count))
    other_places = as_indices(advance(workspace, 2 * count))
    counts = as_indices(advance(workspace, 2 * count + (count + 1) // 2))
    for i in range(count):
        store(keys, i, _descending_key(load(row, load(places, i))))
    passes = _bytes_of(load(row, 0))
    _count_digits(keys, count, passes, counts)
    for digit in range(passes):
        starts = advance(counts, digit * DIGITS)
        if _starts(starts, count):
            _scatter(keys, places, count, digit * DIGIT_BITS, starts, other_keys, other_places)
            keys, other_keys = other_keys, keys
            places, other_places = other_places, places
    return places
