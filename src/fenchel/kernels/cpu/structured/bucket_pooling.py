"""Pooling many entries with hardly any sorting: inside a group their order does not matter.

The entries are counted into buckets of equal width. Pooling whole buckets gives groups whose cumulated
sum is a concave line, a lower bound of the true one; and of the true one's values inside a bucket an
upper bound is known, as its entries lie between the bucket's ends. Where that is below the line, the
bucket belongs to its group as a whole. Only the entries of the other buckets are sorted, and the
blocks pooled again. What lies beyond the threshold tau of the first groups, itself a lower bound, is
measured against a line of slope tau: none of it is in the support.
"""

from __future__ import annotations

from numba import float64

from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import advance, as_bytes, as_indices, as_type_of, load, store
from fenchel.kernels.cpu.structured.pooling import block_sum, push, push_ordered, settle
from fenchel.kernels.cpu.structured.sorting import sort_falling, sort_workspace

ENTRIES_A_BUCKET = 8


def buckets_workspace(columns: int) -> int:
    """Float64 numbers of scratch memory, for `solve_many`."""
    return 5 * columns + sort_workspace(columns)


@sequential
def _count(row, places, count, largest, scale, buckets, numbers, sums, sizes):
    """Note the bucket of every entry; fill the sums (of x - largest) and sizes of the buckets."""
    fill(sums, buckets, 0.0)
    fill(sizes, buckets, 0.0)
    for i in range(count):
        x = float64(load(row, load(places, i))) - largest
        bucket = min(int(-x * scale), buckets - 1)
        store(numbers, i, bucket)
        store(sums, bucket, load(sums, bucket) + x)
        store(sizes, bucket, load(sizes, bucket) + 1.0)


@sequential
def _pool(row, ordered, largest, strength, buckets, pile, stack):
    """The groups of all buckets, of open ones entry by entry; returns how many there are."""
    sums, sizes, is_open = pile
    groups, rank, entry = 0, 0.0, 0
    for bucket in range(buckets):
        size = load(sizes, bucket)
        if load(is_open, bucket) == 1:
            listed = advance(ordered, entry)
            groups = push_ordered(row, listed, int(size), largest, strength, rank, stack, groups)
            entry += int(size)
        elif size > 0.0:
            total = block_sum(load(sums, bucket), size, rank, strength)
            groups = push(stack, groups, total, size)
        rank += size
    return groups


@scalar
def _may_divide(total, size, rank, strength, bucket, width, level, height):
    """Whether entries of a bucket may lift the cumulated sum above a line of slope `level`.

    Before the bucket the sum is at `height` from the line. The largest j entries of the bucket sum to
    at most j high and total - (size - j) low; both bounds meet at j = top.
    """
    low, high = -(bucket + 1.0) * width, -bucket * width
    top = (total - size * low) / width
    return height + block_sum(top * high, top, rank, strength) > level * top


@sequential
def _open(buckets, strength, width, pile, stack, tau):
    """Mark the buckets that groups may divide; returns how many entries they hold."""
    sums, sizes, is_open = pile
    means, counts = stack
    entries, group, rank, height = 0, 0, 0.0, 0.0
    level, last = load(means, 0), load(counts, 0)
    for bucket in range(buckets):
        size = load(sizes, bucket)
        if size == 0.0:
            continue
        if rank >= last and level > tau:
            group += 1
            level, height = max(load(means, group), tau), 0.0
            last += load(counts, group)
        total = load(sums, bucket)
        if size > 1.0 and _may_divide(total, size, rank, strength, bucket, width, level, height):
            store(is_open, bucket, 1)
            entries += int(size)
        height += block_sum(total, size, rank, strength) - level * size
        rank += size
    return entries


@sequential
def _list_open(places, numbers, count, is_open, listed):
    filled = 0
    for i in range(count):
        store(listed, filled, load(places, i))
        filled += 1 if load(is_open, load(numbers, i)) == 1 else 0


@sequential
def _write_open(ordered, buckets, pile, stack, tau, table, out, first):
    """Write the entries of open buckets; note probability and first rank of the others in the table."""
    _, sizes, is_open = pile
    means, counts = stack
    values, names = table
    group, start, last, rank, entry = 0, 0.0, load(counts, 0), 0.0, 0
    for bucket in range(buckets):
        size, opened = load(sizes, bucket), load(is_open, bucket) == 1
        for _ in range(int(size) if opened else int(size > 0.0)):
            if rank >= last:
                group, start = group + 1, last
                last += load(counts, group)
            inside = load(means, group) > tau
            value, name = (load(means, group) - tau, start) if inside else (0.0, 0.0)
            if opened:
                store(out, load(ordered, entry), value)
                store(first, load(ordered, entry), name)
                entry += 1
                rank += 1.0
            else:
                store(values, bucket, value)
                store(names, bucket, name)
                rank += size


@sequential
def _write_closed(places, numbers, count, is_open, table, out, first):
    values, names = table
    for i in range(count):
        place, bucket = load(places, i), load(numbers, i)
        if load(is_open, bucket) == 0:
            store(out, place, load(values, bucket))
            store(first, place, load(names, bucket))


@sequential
def solve_many(row, places, count, largest, reach, strength, out, first, workspace):
    """Write the probabilities and first ranks of the entries in `places`, none below largest - reach."""
    buckets = count // ENTRIES_A_BUCKET
    stack = (workspace, advance(workspace, count))
    sums = advance(workspace, 2 * count)
    sizes = advance(sums, buckets)
    numbers = as_indices(advance(workspace, 3 * count))
    listed = advance(numbers, count)
    is_open = as_bytes(advance(workspace, 4 * count))
    pile = (sums, sizes, is_open)
    scale = buckets / reach if reach > 0.0 else 1.0
    fill(is_open, buckets, 0)
    _count(row, places, count, largest, scale, buckets, numbers, sums, sizes)
    groups = _pool(row, listed, largest, strength, buckets, pile, stack)
    tau = settle(stack, groups)
    opened = _open(buckets, strength, 1.0 / scale, pile, stack, tau)
    if opened > 0:
        _list_open(places, numbers, count, is_open, listed)
        listed = sort_falling(row, listed, opened, advance(workspace, 5 * count))
        groups = _pool(row, listed, largest, strength, buckets, pile, stack)
        tau = settle(stack, groups)
    table = (as_type_of(out, sums), as_indices(advance(workspace, 4 * count + count // 2)))
    _write_open(listed, buckets, pile, stack, tau, table, out, first)
    _write_closed(places, numbers, count, is_open, table, out, first)
