"""Memory of the C library, for results whose size only the kernel knows."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from fenchel.kernels.cpu.launch.memory import INT64, llvm_intrinsic

_POINTER = ir.IntType(8).as_pointer()


@llvm_intrinsic
def allocate(typingctx, size):
    """The address of `size` bytes."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(_POINTER, [INT64])
        function = cgutils.get_or_insert_function(builder.module, kind, "malloc")
        return builder.ptrtoint(builder.call(function, args), INT64)

    return types.int64(types.int64), codegen


@llvm_intrinsic
def release(typingctx, address):
    """Give back what `allocate` has returned."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [_POINTER])
        function = cgutils.get_or_insert_function(builder.module, kind, "free")
        builder.call(function, [builder.inttoptr(args[0], _POINTER)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@llvm_intrinsic
def at_address(typingctx, model, address):
    """Memory at `address` for what `model` points to."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[1], context.get_value_type(model))

    return model(model, types.int64), codegen
