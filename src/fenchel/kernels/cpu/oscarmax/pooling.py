"""Pooling adjacent violators: the nearest non-increasing sequence, in linear time.

The groups are a stack of sums and sizes with decreasing means. The numbers are u_k = x_k + strength k
for the ranks k = 0, 1, ...; a block is a set of entries whose order inside does not matter.

Many entries are pooled with hardly any sorting. They are counted into buckets of equal width. Pooling
whole buckets gives groups whose cumulative sum is a concave line, a lower bound of the true one. Inside
a bucket, the true sum has an upper bound, because its entries lie between the ends of the bucket. If
that bound is below the line, the bucket belongs to its group as a whole. Only the entries of the other
buckets, called open, are sorted, and the blocks are pooled again. Beyond the threshold tau of the first
groups, itself a lower bound, the line of slope tau is used instead: no entry above it is in the
support.
"""

from __future__ import annotations

from numba import float64

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import (
    advance,
    as_bytes,
    as_indices,
    as_pointer_like,
    load,
    store,
)
from fenchel.kernels.cpu.oscarmax.sorting import sort_descending, sort_workspace
from fenchel.kernels.cpu.shared.columns import fill
from fenchel.kernels.cpu.shared.simplex_threshold import weighted_simplex_threshold

ENTRIES_PER_BUCKET = 8


@inlined
def block_sum(total, size, rank, strength):
    """The sum of u over `size` entries with the sum `total` and first rank `rank`."""
    return total + strength * size * (rank + 0.5 * (size - 1.0))


@inlined
def push_block(stack, groups, total, size):
    """Add a block; groups whose mean is below that of the next one are merged with it."""
    sums, sizes = stack
    while groups > 0 and load(sums, groups - 1) * size < total * load(sizes, groups - 1):
        groups -= 1
        total += load(sums, groups)
        size += load(sizes, groups)
    store(sums, groups, total)
    store(sizes, groups, size)
    return groups + 1


@inlined
def push_ordered(row, ordered, count, largest, strength, rank, stack, groups):
    """Add `count` ordered entries one by one; the first has rank `rank`."""
    for i in range(count):
        x = float64(load(row, load(ordered, i))) - largest
        groups = push_block(stack, groups, x + strength * (rank + i), 1.0)
    return groups


@inlined
def means_and_threshold(stack, groups):
    """Turn the sums into means; returns the threshold of the projection onto the simplex."""
    sums, sizes = stack
    for group in range(groups):
        store(sums, group, load(sums, group) / load(sizes, group))
    return weighted_simplex_threshold(sums, sizes, groups)


def buckets_workspace(columns: int) -> int:
    """Scratch memory of `pool_buckets`, in float64 numbers."""
    return 5 * columns + sort_workspace(columns)


@inlined
def _count_entries(row, places, count, largest, scale, buckets, numbers, sums, sizes):
    """Fill the bucket number of every entry, and the sums (of x - largest) and sizes of the buckets."""
    fill(sums, buckets, 0.0)
    fill(sizes, buckets, 0.0)
    for i in range(count):
        x = float64(load(row, load(places, i))) - largest
        bucket = min(int(-x * scale), buckets - 1)
        store(numbers, i, bucket)
        store(sums, bucket, load(sums, bucket) + x)
        store(sizes, bucket, load(sizes, bucket) + 1.0)


@inlined
def _pool_all(row, ordered, largest, strength, buckets, pile, stack):
    """Pool all buckets, open ones entry by entry; returns the number of groups."""
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
            groups = push_block(stack, groups, total, size)
        rank += size
    return groups


@inlined
def _may_be_divided(total, size, rank, strength, bucket, width, level, height):
    """Whether entries of a bucket may raise the cumulative sum above a line of slope `level`.

    Before the bucket, the sum is at `height` from the line. The largest j entries of the bucket sum to
    at most j high and total - (size - j) low; both bounds meet at j = top.
    """
    low, high = -(bucket + 1.0) * width, -bucket * width
    top = (total - size * low) / width
    return height + block_sum(top * high, top, rank, strength) > level * top


@inlined
def _mark_open(buckets, strength, width, pile, stack, tau):
    """Mark the buckets in which a group may end as open; returns the number of their entries."""
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
        if size > 1.0 and _may_be_divided(
            total, size, rank, strength, bucket, width, level, height
        ):
            store(is_open, bucket, 1)
            entries += int(size)
        height += block_sum(total, size, rank, strength) - level * size
        rank += size
    return entries


@inlined
def _list_open(places, numbers, count, is_open, listed):
    filled = 0
    for i in range(count):
        store(listed, filled, load(places, i))
        filled += 1 if load(is_open, load(numbers, i)) == 1 else 0


@inlined
def _write_open(ordered, buckets, pile, stack, tau, table, out, first):
    """Write the entries of open buckets; put probability and first rank of the others into the table."""
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


@inlined
def _write_closed(places, numbers, count, is_open, table, out, first):
    values, names = table
    for i in range(count):
        place, bucket = load(places, i), load(numbers, i)
        if load(is_open, bucket) == 0:
            store(out, place, load(values, bucket))
            store(first, place, load(names, bucket))


@inlined
def pool_buckets(row, places, count, largest, reach, strength, out, first, workspace):
    """Write p and first ranks of the entries in `places`, which are at least largest - reach."""
    buckets = count // ENTRIES_PER_BUCKET
    stack = (workspace, advance(workspace, count))
    sums = advance(workspace, 2 * count)
    sizes = advance(sums, buckets)
    numbers = as_indices(advance(workspace, 3 * count))
    listed = advance(numbers, count)
    is_open = as_bytes(advance(workspace, 4 * count))
    pile = (sums, sizes, is_open)
    scale = buckets / reach if reach > 0.0 else 1.0
    fill(is_open, buckets, 0)
    _count_entries(row, places, count, largest, scale, buckets, numbers, sums, sizes)
    groups = _pool_all(row, listed, largest, strength, buckets, pile, stack)
    tau = means_and_threshold(stack, groups)
    opened = _mark_open(buckets, strength, 1.0 / scale, pile, stack, tau)
    if opened > 0:
        _list_open(places, numbers, count, is_open, listed)
        listed = sort_descending(row, listed, opened, advance(workspace, 5 * count))
        groups = _pool_all(row, listed, largest, strength, buckets, pile, stack)
        tau = means_and_threshold(stack, groups)
    table = (as_pointer_like(out, sums), as_indices(advance(workspace, 4 * count + count // 2)))
    _write_open(listed, buckets, pile, stack, tau, table, out, first)
    _write_closed(places, numbers, count, is_open, table, out, first)
