"""Typed memory for compiled kernels: pointers without bounds checks, casts and atomic counters.

A kernel receives one pointer to a block of 64-bit words, of type `Arguments`. The first three are
counters that its threads share; the others are sizes and addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

(
    ROWS_CLAIMED,
    THREADS_STARTED,
    ROWS_UNSOLVED,
    ROWS,
    CHUNK,
    COLUMNS,
    PARAMETER,
    PARAMETER_STRIDE,
    WORKSPACE,
    WORKSPACE_SIZE,
    TENSORS,
) = range(11)
INT64 = ir.IntType(64)


class Arguments(types.Opaque):
    """The type of an argument block: the scalar type of the rows, and a digest of the sources.

    `sources` is a digest of all files that kernels are compiled from. It is part of the type's name and
    so of the key under which Numba stores compiled code: code from other sources is never loaded.
    """

    def __init__(self, dtype: types.Float, sources: str) -> None:
        self.dtype = dtype
        super().__init__(name=f"Arguments({dtype}, {sources})")


register_model(Arguments)(models.OpaqueModel)


def llvm_intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's `intrinsic`: f(typingctx, x) becomes a function of x in compiled code."""
    return intrinsic(function)


def _word(builder, block, index):
    words = builder.bitcast(block, INT64.as_pointer())
    return builder.gep(words, [index])


def _typed_pointer(element):
    """An intrinsic that reads word `index` of the block as a pointer to `element`s."""

    @llvm_intrinsic
    def read(typingctx, arguments, index):
        pointer = types.CPointer(element or arguments.dtype)

        def codegen(context, builder, signature, args):
            address = builder.load(_word(builder, *args))
            return builder.inttoptr(address, context.get_value_type(pointer))

        return pointer(arguments, types.int64), codegen

    return read


rows_at = _typed_pointer(None)
floats_at = _typed_pointer(types.float64)
integers_at = _typed_pointer(types.int64)
indices_at = _typed_pointer(types.int32)
bytes_at = _typed_pointer(types.int8)


@llvm_intrinsic
def integer_at(typingctx, arguments, index):
    """Word `index` of the block as an integer."""

    def codegen(context, builder, signature, args):
        return builder.load(_word(builder, *args))

    return types.int64(arguments, types.int64), codegen


@llvm_intrinsic
def claim(typingctx, arguments, index, amount):
    """Add `amount` to the shared counter `index`; returns its previous value."""

    def codegen(context, builder, signature, args):
        block, index, amount = args
        return builder.atomic_rmw("add", _word(builder, block, index), amount, "monotonic")

    return types.int64(arguments, types.int64, types.int64), codegen


@llvm_intrinsic
def load(typingctx, pointer, index):
    """`pointer[index]`"""

    def codegen(context, builder, signature, args):
        return builder.load(builder.gep(args[0], [args[1]], inbounds=True))

    return pointer.dtype(pointer, types.int64), codegen


@llvm_intrinsic
def store(typingctx, pointer, index, value):
    """`pointer[index] = value`, the value cast to the pointer's type"""

    def codegen(context, builder, signature, args):
        target, index, number = args
        number = context.cast(builder, number, signature.args[2], pointer.dtype)
        builder.store(number, builder.gep(target, [index], inbounds=True))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, value), codegen


@llvm_intrinsic
def advance(typingctx, pointer, amount):
    """`pointer + amount`"""

    def codegen(context, builder, signature, args):
        return builder.gep(args[0], [args[1]], inbounds=True)

    return pointer(pointer, types.int64), codegen


def _cast_pointer(element):
    """An intrinsic that casts a pointer to a pointer to `element`s."""

    @llvm_intrinsic
    def cast(typingctx, pointer):
        target = types.CPointer(element)

        def codegen(context, builder, signature, args):
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(pointer), codegen

    return cast


as_floats = _cast_pointer(types.float64)
as_indices = _cast_pointer(types.int32)
as_integers = _cast_pointer(types.int64)
as_bytes = _cast_pointer(types.int8)


@llvm_intrinsic
def as_pointer_like(typingctx, model, pointer):
    """Cast a pointer to the type of the pointer `model`."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[1], context.get_value_type(model))

    return model(model, pointer), codegen


@llvm_intrinsic
def real(typingctx, model, value):
    """`value` cast to the scalar type of `model`, a number or a pointer."""
    target = getattr(model, "dtype", model)

    def codegen(context, builder, signature, args):
        return context.cast(builder, args[1], signature.args[1], target)

    return target(model, value), codegen


def _extremum(name):
    """An intrinsic of two numbers of one type."""

    @llvm_intrinsic
    def extremum(typingctx, first, second):
        def codegen(context, builder, signature, args):
            kind = context.get_value_type(first)
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(kind, [kind, kind]),
                f"llvm.{name}.{'f32' if first == types.float32 else 'f64'}",
            )
            return builder.call(function, args, fastmath=("nsz",))

        return first(first, first), codegen

    return extremum


# Both return NaN if one of the numbers is NaN.
maximum = _extremum("maximum")
minimum = _extremum("minimum")
