"""Sum over rows of g h^T for gradients g with few entries that are not zero: kernels.

A matrix product would read and write the whole sum once for every chunk of rows. Instead

list_rows       writes the entries of every row of a chunk;
name_full_rows  names the rows that have too many for a list;
add_full_rows   (in full_rows.py) multiplies these, if there are any, and adds that to the sum;
sum_classes     adds what the lists of some chunks, sorted by class, hold of every class.

How many entries there are is known to the device alone, and nothing waits for it.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton.language as tl

from fenchel.kernels.triton.launch.kernel import kernel


@kernel
def list_rows(
    slopes, listed, target, classes, values, counts, columns, groups, stride,
    LONGEST: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The entries of a row are those of the groups of columns that are listed, and the target's.

    The rest of a list names the class `columns`, which is none. A row with more than LONGEST entries
    has an empty list and a count above LONGEST, and so has one with NaN, which is everywhere in its row.
    """
    row = tl.program_id(0).to(tl.int64)
    slopes += row * stride
    listed += row * (groups + 1)
    classes += row * LONGEST
    values += row * LONGEST
    found = tl.load(listed + groups)
    wanted = tl.load(target + row).to(tl.int64)
    known = (wanted >= 0) & (wanted < columns)
    own = tl.load(slopes + wanted, mask=known, other=0.0).to(tl.float32)
    count = found * 0 + (LONGEST + 1)
    if (found <= LONGEST) & (own == own):
        count = found * 0
        met = found * 0
        for start in range(0, found, BLOCK):
            place = start + tl.arange(0, BLOCK)
            group = tl.load(listed + place, mask=place < found, other=0)
            column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
            inside = (place < found)[:, None] & (column < columns)
            slope = tl.load(slopes + column, mask=inside, other=0.0).to(tl.float32)
            column = tl.reshape(column, [BLOCK * GROUP])
            slope = tl.reshape(slope, [BLOCK * GROUP])
            lives = (slope != 0.0).to(tl.int32)
            entry = count + tl.cumsum(lives, 0) - lives
            here = (lives != 0) & (entry < LONGEST)
            tl.store(classes + entry, column, mask=here)
            tl.store(values + entry, slope, mask=here)
            count += tl.sum(lives, axis=0)
            met += tl.sum(((lives != 0) & (column == wanted)).to(tl.int32), axis=0)
        if (own != 0.0) & (met == 0):
            if count < LONGEST:
                tl.store(classes + count, wanted.to(tl.int32))
                tl.store(values + count, own)
            count += 1
    tl.debug_barrier()
    entry = tl.arange(0, LONGEST)
    used = tl.where(count <= LONGEST, count, 0)
    tl.store(classes + entry, entry * 0 + columns, mask=entry >= used)
    tl.store(counts + row, count)


@kernel
def name_full_rows(counts, full, rows, LONGEST: tl.constexpr, WIDTH: tl.constexpr):
    """One program: how many rows have too many entries for a list, and then their numbers."""
    row = tl.arange(0, WIDTH)
    count = tl.load(counts + row, mask=row < rows, other=0)
    left = (count > LONGEST).to(tl.int32)
    tl.store(full, tl.sum(left, axis=0))
    tl.store(full + 1 + tl.cumsum(left, 0) - left, row, mask=left != 0)


@kernel
def sum_classes(
    starts, order, values, hidden, out, width, hidden_stride,
    LONGEST: tl.constexpr, D: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """out[c] += sum of value * hidden[row] over the places, in the lists of all rows, of class c."""
    c = tl.program_id(0)
    d = tl.program_id(1) * D + tl.arange(0, D)
    begin = tl.load(starts + c)
    end = tl.load(starts + c + 1)
    if begin < end:
        totals = tl.zeros([AT_ONCE, D], tl.float32)
        for start in range(begin, end, AT_ONCE):
            number = start + tl.arange(0, AT_ONCE)
            here = number < end
            place = tl.load(order + number, mask=here, other=0)
            value = tl.load(values + place, mask=here, other=0.0).to(tl.float32)
            inside = here[:, None] & (d < width)[None, :]
            h_places = (place // LONGEST)[:, None] * hidden_stride + d[None, :]
            h = tl.load(hidden + h_places, mask=inside, other=0.0)
            totals += value[:, None] * h.to(tl.float32)
        total = tl.sum(totals, axis=0)
        places = c.to(tl.int64) * width + d
        total += tl.load(out + places, mask=d < width, other=0.0).to(tl.float32)
        tl.store(out + places, total, mask=d < width)
