"""Sorting some columns of a row, largest first: by insertion if they are few, else digit by digit."""

from __future__ import annotations

from llvmlite import ir
from numba import types

from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import (
    INT64,
    advance,
    as_indices,
    as_integers,
    device,
    load,
    store,
)

FEW = 48
DIGIT = 8  # bits
DIGITS = 1 << DIGIT


@device
def _bytes_of(typingctx, number):
    """The size of a number in bytes."""

    def codegen(context, builder, signature, args):
        return INT64(number.bitwidth // 8)

    return types.int64(number), codegen


@device
def _falling_key(typingctx, number):
    """An integer whose bits, read without a sign, rise as the number falls."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(number.bitwidth)
        bits = builder.bitcast(args[0], word)
        sign = builder.ashr(bits, word(number.bitwidth - 1))
        # The bits of a negative number rise as it falls; those of a positive one but its sign fall.
        flip = builder.and_(builder.not_(sign), word((1 << (number.bitwidth - 1)) - 1))
        key = builder.xor(bits, flip)
        return key if number.bitwidth == 64 else builder.zext(key, INT64)

    return types.int64(number), codegen


def sort_workspace(columns: int) -> int:
    """Float64 numbers of scratch memory: two lists of keys, one of places, and the counts."""
    return 2 * columns + (columns + 1) // 2 + 4 * DIGITS


@scalar
def _insert(row, places, count):
    for i in range(1, count):
        place = load(places, i)
        value = load(row, place)
        j = i
        while j > 0 and load(row, load(places, j - 1)) < value:
            store(places, j, load(places, j - 1))
            j -= 1
        store(places, j, place)


@scalar
def _count_digits(keys, count, passes, counts):
    fill(counts, passes * DIGITS, 0)
    for i in range(count):
        key = load(keys, i)
        for digit in range(passes):
            at = digit * DIGITS + ((key >> (digit * DIGIT)) & (DIGITS - 1))
            store(counts, at, load(counts, at) + 1)


@scalar
def _starts(counts, count):
    """Turn counts into where each digit's numbers begin; False if one digit has all of them."""
    start = 0
    for digit in range(DIGITS):
        size = load(counts, digit)
        if size == count:
            return False
        store(counts, digit, start)
        start += size
    return True


@scalar
def _scatter(keys, places, count, shift, starts, new_keys, new_places):
    for i in range(count):
        key = load(keys, i)
        digit = (key >> shift) & (DIGITS - 1)
        at = load(starts, digit)
        store(starts, digit, at + 1)
        store(new_keys, at, key)
        store(new_places, at, load(places, i))


@sequential
def sort_falling(row, places, count, workspace):
    """Order the columns listed in `places` by their numbers, largest first.

    Returns where the ordered list is, which may be in the workspace.
    """
    if count <= FEW:
        _insert(row, places, count)
        return places
    keys, other_keys = as_integers(workspace), as_integers(advance(workspace, count))
    other_places = as_indices(advance(workspace, 2 * count))
    counts = as_indices(advance(workspace, 2 * count + (count + 1) // 2))
    for i in range(count):
        store(keys, i, _falling_key(load(row, load(places, i))))
    passes = _bytes_of(load(row, 0))
    _count_digits(keys, count, passes, counts)
    for digit in range(passes):
        starts = advance(counts, digit * DIGITS)
        if _starts(starts, count):
            _scatter(keys, places, count, digit * DIGIT, starts, other_keys, other_places)
            keys, other_keys = other_keys, keys
            places, other_places = other_places, places
    return places
