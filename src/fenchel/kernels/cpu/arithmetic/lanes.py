"""Vectors of one number per row of a batch, for kernels that solve BATCH rows side by side.

A vector of 16 numbers fills one AVX-512 register (float32) or two (float64); the compiler splits it on
other processors. `+`, `-`, `*`, `/` and the functions below work lane by lane.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, overload, register_model

from fenchel.kernels.cpu.launch.memory import llvm_intrinsic

BATCH = 16  # lanes, and rows of a batch
MASK_BITS = ir.IntType(BATCH)


class Lanes(types.Type):
    """BATCH numbers of one type."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind) -> None:
        element = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(element, BATCH))


FLOATS = Lanes(types.float64)


def _vector_pointer(context, builder, pointer, kind):
    return builder.bitcast(pointer, context.get_value_type(kind).as_pointer())


@llvm_intrinsic
def load_lanes(typingctx, pointer, index):
    """The numbers at `pointer[index]` to `pointer[index + 15]`."""
    kind = Lanes(pointer.dtype)

    def codegen(context, builder, signature, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        alignment = context.get_abi_sizeof(context.get_value_type(pointer.dtype))
        return builder.load(_vector_pointer(context, builder, place, kind), align=alignment)

    return kind(pointer, types.int64), codegen


@llvm_intrinsic
def store_lanes(typingctx, pointer, index, lanes):
    """Write the numbers to `pointer[index]` and on."""

    def codegen(context, builder, signature, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        alignment = context.get_abi_sizeof(context.get_value_type(pointer.dtype))
        builder.store(args[2], _vector_pointer(context, builder, place, lanes), align=alignment)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, lanes), codegen


def _broadcast(builder, number, kind):
    single = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), BATCH), [0] * BATCH)
    return builder.shuffle_vector(single, ir.Constant(kind, ir.Undefined), zeros)


@llvm_intrinsic
def lanes_like(typingctx, model, value):
    """`value` in every lane, in the type of the lanes `model`."""

    def codegen(context, builder, signature, args):
        number = context.cast(builder, args[1], signature.args[1], model.dtype)
        return _broadcast(builder, number, context.get_value_type(model))

    return model(model, value), codegen


def _arithmetic(name):
    @llvm_intrinsic
    def calculate(typingctx, first, second):
        def codegen(context, builder, signature, args):
            return getattr(builder, name)(*args, flags=("contract",))

        return first(first, second), codegen

    return calculate


def _overload_operator(function, name):
    calculate = _arithmetic(name)

    @overload(function)
    def apply(first, second):
        if isinstance(first, Lanes) and first == second:
            return lambda first, second: calculate(first, second)
        return None


for _function, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _overload_operator(_function, _name)


def _llvm_function(name, count):
    """An intrinsic of `count` vectors of one type."""

    def codegen(context, builder, signature, args):
        lanes = signature.return_type
        kind = context.get_value_type(lanes)
        suffix = f"v{BATCH}f{lanes.dtype.bitwidth}"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind] * count), f"llvm.{name}.{suffix}"
        )
        return builder.call(function, args)

    return codegen


@llvm_intrinsic
def larger(typingctx, first, second):
    """The larger number of every lane; the other one if one is NaN."""
    return first(first, first), _llvm_function("maxnum", 2)


@llvm_intrinsic
def smaller(typingctx, first, second):
    """The smaller number of every lane; the other one if one is NaN."""
    return first(first, first), _llvm_function("minnum", 2)


@llvm_intrinsic
def square_root(typingctx, lanes):
    """The square root of every lane."""
    return lanes(lanes), _llvm_function("sqrt", 1)


@llvm_intrinsic
def where_above(typingctx, first, second, chosen, other):
    """`chosen` in the lanes where first > second, `other` elsewhere."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return chosen(first, first, chosen, chosen), codegen


@llvm_intrinsic
def any_above(typingctx, first, second):
    """Whether first > second in any lane."""

    def codegen(context, builder, signature, args):
        mask = builder.fcmp_ordered(">", args[0], args[1])
        return builder.icmp_unsigned("!=", builder.bitcast(mask, MASK_BITS), MASK_BITS(0))

    return types.boolean(first, first), codegen


@llvm_intrinsic
def widened(typingctx, lanes):
    """The same numbers as float64."""

    def codegen(context, builder, signature, args):
        if lanes == FLOATS:
            return args[0]
        return builder.fpext(args[0], context.get_value_type(FLOATS))

    return FLOATS(lanes), codegen


@llvm_intrinsic
def narrowed(typingctx, model, lanes):
    """float64 numbers rounded to the type of the lanes `model`."""

    def codegen(context, builder, signature, args):
        if model == FLOATS:
            return args[1]
        return builder.fptrunc(args[1], context.get_value_type(model))

    return model(model, lanes), codegen


@llvm_intrinsic
def transpose_block(typingctx, source, stride, target):
    """Write the BATCH x BATCH numbers at `source`, rows `stride` apart, to `target`, transposed.

    Every round interleaves the first half of the vectors with the second; four make a transposition.
    """

    def codegen(context, builder, signature, args):
        base, stride, target = args
        element = context.get_value_type(source.dtype)
        kind = ir.VectorType(element, BATCH)
        alignment = context.get_abi_sizeof(element)
        index = ir.IntType(64)

        def vector_at(pointer, offset):
            return builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())

        vectors = [
            builder.load(vector_at(base, builder.mul(stride, index(i))), align=alignment)
            for i in range(BATCH)
        ]
        half = BATCH // 2
        shuffles = [
            ir.Constant(
                ir.VectorType(ir.IntType(32), BATCH),
                [start + i // 2 + BATCH * (i % 2) for i in range(BATCH)],
            )
            for start in (0, half)
        ]
        for _ in range(BATCH.bit_length() - 1):
            vectors = [
                builder.shuffle_vector(vectors[i], vectors[i + half], shuffle)
                for i in range(half)
                for shuffle in shuffles
            ]
        for i, vector in enumerate(vectors):
            builder.store(vector, vector_at(target, index(BATCH * i)), align=alignment)
        return context.get_dummy_value()

    return types.void(source, types.int64, source), codegen
