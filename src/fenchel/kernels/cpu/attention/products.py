"""Products of blocks that fit into the nearest caches, in explicit vectors.

A tile of TILE_ROWS × TILE_COLUMNS sums stays in registers. LLVM splits its vectors on processors whose
own are shorter; there, smaller parts of the tile are computed one after the other.
"""

from __future__ import annotations

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils

from fenchel.kernels.cpu.launch.compilation import reducing
from fenchel.kernels.cpu.launch.memory import INT64, llvm_intrinsic, load, real

TILE_ROWS, TILE_COLUMNS = 8, 32
INT32 = ir.IntType(32)

_features = binding.get_host_cpu_features()
# (bytes of a vector, vectors of a row, rows) of the part of a tile that fits into the registers
VECTOR_BYTES, VECTORS, PART_ROWS = (64, 2, 8) if _features.get("avx512f") else (32, 2, 4)


class _Vectors:
    """Vectors of `lanes` numbers of one type, for an intrinsic's code."""

    def __init__(self, builder, element, lanes) -> None:
        self.builder, self.lanes = builder, lanes
        bits = element.bitwidth
        self.element = ir.FloatType() if bits == 32 else ir.DoubleType()
        self.kind = ir.VectorType(self.element, lanes)
        self.align, self.name = bits // 8, f"v{lanes}f{bits}"

    def _at(self, pointer, offset):
        place = self.builder.gep(pointer, [offset], inbounds=True)
        return self.builder.bitcast(place, self.kind.as_pointer())

    def load(self, pointer, offset):
        return self.builder.load(self._at(pointer, offset), align=self.align)

    def store(self, value, pointer, offset):
        self.builder.store(value, self._at(pointer, offset), align=self.align)

    def splat(self, number):
        undefined = ir.Constant(self.kind, ir.Undefined)
        single = self.builder.insert_element(undefined, number, INT32(0))
        order = ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(single, undefined, order)

    def zero(self):
        return ir.Constant(self.kind, [0.0] * self.lanes)

    def fma(self, factor, other, summand):
        kind = ir.FunctionType(self.kind, [self.kind] * 3)
        function = cgutils.get_or_insert_function(
            self.builder.module, kind, f"llvm.fma.{self.name}"
        )
        return self.builder.call(function, [factor, other, summand])


class _Loop:
    """`for index in range(count)` with values that are carried from one turn to the next."""

    def __init__(self, builder, count, carried) -> None:
        self.builder = builder
        before = builder.block
        self._body = builder.append_basic_block("loop")
        self._after = builder.append_basic_block("after")
        holds = builder.icmp_signed(">", count, INT64(0))
        builder.cbranch(holds, self._body, self._after)
        builder.position_at_end(self._body)
        self.index = builder.phi(INT64)
        self.index.add_incoming(INT64(0), before)
        self.carried = [builder.phi(value.type) for value in carried]
        for phi, value in zip(self.carried, carried, strict=True):
            phi.add_incoming(value, before)
        self._count, self._before, self._start = count, before, carried

    def close(self, values):
        """End the loop's body; returns the values after the last turn."""
        builder = self.builder
        end = builder.block
        following = builder.add(self.index, INT64(1))
        self.index.add_incoming(following, end)
        for phi, value in zip(self.carried, values, strict=True):
            phi.add_incoming(value, end)
        builder.cbranch(builder.icmp_signed("<", following, self._count), self._body, self._after)
        builder.position_at_end(self._after)
        results = []
        for first, value in zip(self._start, values, strict=True):
            phi = builder.phi(value.type)
            phi.add_incoming(first, self._before)
            phi.add_incoming(value, end)
            results.append(phi)
        return results


def _least(builder, first, second):
    return builder.select(builder.icmp_signed("<", first, second), first, second)


@llvm_intrinsic
def multiply_tile(
    typingctx, a, rows, row_stride, step, b, b_step, depth, factor, out, out_stride, adds
):
    """out[r, c] = factor · Σ_k a[r, k] b[k, c] for r < rows ≤ TILE_ROWS and c < TILE_COLUMNS.

    a[r, k] is a[r row_stride + k step], b[k, c] is b[k b_step + c]. With `adds`, what is in `out`
    is a further summand.
    """
    integer, element = types.int64, a.dtype

    def codegen(context, builder, signature, args):
        a, rows, row_stride, step, b, b_step, depth, factor, out, out_stride, adds = args
        vectors = _Vectors(builder, element, VECTOR_BYTES * 8 // element.bitwidth)
        last = builder.sub(rows, INT64(1))
        width = vectors.lanes * VECTORS
        factor = vectors.splat(factor)
        for first in range(0, TILE_ROWS, PART_ROWS):
            places = [_least(builder, INT64(first + r), last) for r in range(PART_ROWS)]
            starts = [builder.gep(a, [builder.mul(r, row_stride)]) for r in places]
            targets = [builder.gep(out, [builder.mul(r, out_stride)]) for r in places]
            for column in range(0, TILE_COLUMNS, width):
                columns = [INT64(column + i * vectors.lanes) for i in range(VECTORS)]
                sums = [vectors.zero()] * (PART_ROWS * VECTORS)
                loop = _Loop(builder, depth, sums)
                line = builder.gep(b, [builder.mul(loop.index, b_step)])
                right = [vectors.load(line, c) for c in columns]
                at = builder.mul(loop.index, step)
                left = [vectors.splat(builder.load(builder.gep(s, [at]))) for s in starts]
                pairs = [(x, y) for x in left for y in right]
                sums = loop.close(
                    [vectors.fma(x, y, s) for (x, y), s in zip(pairs, loop.carried, strict=True)]
                )
                sums = [builder.fmul(s, factor) for s in sums]
                cells = [(target, c) for target in targets for c in columns]
                previous = [vectors.load(target, c) for target, c in cells]
                for (target, c), s, old in zip(cells, sums, previous, strict=True):
                    total = builder.select(adds, builder.fadd(s, old), s)
                    vectors.store(total, target, c)
        return context.get_dummy_value()

    signature = types.void(
        a, integer, integer, integer, b, integer, integer, a.dtype, out, integer, types.boolean
    )
    return signature, codegen


@llvm_intrinsic
def weigh_rows(typingctx, weights, places, count, rows, stride, factor, width, out):
    """out[c] = factor · Σ_a weights[a] rows[places[a] stride + c] for c < width."""
    integer, element = types.int64, weights.dtype

    def codegen(context, builder, signature, args):
        weights, places, count, rows, stride, factor, width, out = args

        def sweep(start, lanes, together):
            """Do `together` vectors at a time, as often as they fit; returns where it ended."""
            vectors = _Vectors(builder, element, lanes)
            step = lanes * together
            turns = builder.sdiv(builder.sub(width, start), INT64(step))
            outer = _Loop(builder, turns, [])
            first = builder.add(start, builder.mul(outer.index, INT64(step)))
            columns = [builder.add(first, INT64(i * lanes)) for i in range(together)]
            inner = _Loop(builder, count, [vectors.zero()] * together)
            place = builder.load(builder.gep(places, [inner.index]))
            place = builder.mul(builder.sext(place, INT64), stride)
            row = builder.gep(rows, [place])
            weight = vectors.splat(builder.load(builder.gep(weights, [inner.index])))
            sums = [
                vectors.fma(weight, vectors.load(row, c), s)
                for c, s in zip(columns, inner.carried, strict=True)
            ]
            sums = inner.close(sums)
            scale = vectors.splat(factor)
            for c, s in zip(columns, sums, strict=True):
                vectors.store(builder.fmul(s, scale), out, c)
            outer.close([])
            return builder.add(start, builder.mul(turns, INT64(step)))

        lanes = VECTOR_BYTES * 8 // element.bitwidth
        end = sweep(sweep(INT64(0), lanes, 4), lanes, 1)
        sweep(end, 1, 1)
        return context.get_dummy_value()

    signature = types.void(weights, places, integer, rows, integer, element, integer, out)
    return signature, codegen


@llvm_intrinsic
def add_scaled(typingctx, target, source, factor, width):
    """target[c] += factor source[c] for c < width."""
    element = target.dtype

    def codegen(context, builder, signature, args):
        target, source, factor, width = args

        def sweep(start, lanes):
            vectors = _Vectors(builder, element, lanes)
            turns = builder.sdiv(builder.sub(width, start), INT64(lanes))
            loop = _Loop(builder, turns, [])
            c = builder.add(start, builder.mul(loop.index, INT64(lanes)))
            scale = vectors.splat(factor)
            total = vectors.fma(scale, vectors.load(source, c), vectors.load(target, c))
            vectors.store(total, target, c)
            loop.close([])
            return builder.add(start, builder.mul(turns, INT64(lanes)))

        sweep(sweep(INT64(0), VECTOR_BYTES * 8 // element.bitwidth), 1)
        return context.get_dummy_value()

    return types.void(target, source, element, types.int64), codegen


def _bits_above(same):
    """An intrinsic that compares with one bound, or with TILE_COLUMNS of them."""

    @llvm_intrinsic
    def compare(typingctx, numbers, bounds):
        def codegen(context, builder, signature, args):
            vectors, zero = _Vectors(builder, numbers.dtype, TILE_COLUMNS), INT64(0)
            one = vectors.splat(builder.load(args[1])) if same else vectors.load(args[1], zero)
            holds = builder.fcmp_unordered(">", vectors.load(args[0], zero), one)
            return builder.zext(builder.bitcast(holds, ir.IntType(TILE_COLUMNS)), INT64)

        return types.int64(numbers, bounds), codegen

    return compare


# Bit i < TILE_COLUMNS is set unless numbers[i] is at most the bound: NaN counts as above.
bits_above_one = _bits_above(same=True)
bits_above_each = _bits_above(same=False)


@llvm_intrinsic
def lowest_bit(typingctx, bits):
    """The number of the lowest set bit."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.int64), codegen


@llvm_intrinsic
def count_bits(typingctx, bits):
    """The number of set bits."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen


@reducing
def dot(left, right, depth):
    """Σ left[e] right[e]."""
    total = real(left, 0.0)
    for e in range(depth):
        total += load(left, e) * load(right, e)
    return total
