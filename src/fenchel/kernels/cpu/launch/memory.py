"""Typed memory for the compiled kernels: pointers without bounds or sign tests, and atomics.

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
    ROWS_LEFT,
    ROWS,
    CHUNK,
    COLUMNS,
    ALPHA,
    ALPHA_STRIDE,
    WORKSPACE,
    WORKSPACE_SIZE,
    TENSORS,
) = range(11)


class Arguments(types.Opaque):
    """The type of an argument block: the scalar type of the rows, and the code it belongs to.

    `sources` is a digest of the files that make the kernels. It is part of the type's name, so it
    is part of the key under which Numba stores compiled code on disk: code compiled from other
    sources is never loaded.
    """

    def __init__(self, dtype: types.Float, sources: str) -> None:
        self.dtype = dtype
        super().__init__(name=f"Arguments({dtype}, {sources})")


register_model(Arguments)(models.OpaqueModel)

INT64 = ir.IntType(64)


def device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's `intrinsic`, which turns f(typingctx, x) into a function of x."""
    return intrinsic(function)


def _word(builder, block, index):
    words = builder.bitcast(block, INT64.as_pointer())
    return builder.gep(words, [index])


def _typed_pointer(element):
    """An intrinsic that reads word `index` of the block as the address of `element`s."""

    @device
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


@device
def integer_at(typingctx, arguments, index):
    """Word `index` of the block as a number."""

    def codegen(context, builder, signature, args):
        return builder.load(_word(builder, *args))

    return types.int64(arguments, types.int64), codegen


@device
def claim(typingctx, arguments, index, amount):
    """Add `amount` to the shared counter `index` and return what it was before."""

    def codegen(context, builder, signature, args):
        block, index, amount = args
        return builder.atomic_rmw("add", _word(builder, block, index), amount, "monotonic")

    return types.int64(arguments, types.int64, types.int64), codegen


@device
def load(typingctx, pointer, index):
    """`pointer[index]`"""

    def codegen(context, builder, signature, args):
        return builder.load(builder.gep(args[0], [args[1]], inbounds=True))

    return pointer.dtype(pointer, types.int64), codegen


@device
def store(typingctx, pointer, index, value):
    """`pointer[index] = value`, the value cast to the pointer's type"""

    def codegen(context, builder, signature, args):
        target, index, number = args
        number = context.cast(builder, number, signature.args[2], pointer.dtype)
        builder.store(number, builder.gep(target, [index], inbounds=True))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, value), codegen


@device
def advance(typingctx, pointer, amount):
    """`pointer + amount`"""

    def codegen(context, builder, signature, args):
        return builder.gep(args[0], [args[1]], inbounds=True)

    return pointer(pointer, types.int64), codegen


def _cast_pointer(element):
    """An intrinsic that takes memory for memory of `element`s."""

    @device
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


@device
def as_type_of(typingctx, model, pointer):
    """Take memory for memory of what `model` points to."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[1], context.get_value_type(model))

    return model(model, pointer), codegen


@device
def real(typingctx, model, value):
    """`value` cast to the type of `model`, a number or a pointer to numbers."""
    target = getattr(model, "dtype", model)

    def codegen(context, builder, signature, args):
        return context.cast(builder, args[1], signature.args[1], target)

    return target(model, value), codegen


def _extremum(name):
    """An intrinsic of two numbers of one type."""

    @device
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


maximum = _extremum("maximum")  # NaN if either is NaN,
minimum = _extremum("minimum")  # likewise
