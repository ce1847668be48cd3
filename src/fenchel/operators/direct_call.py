"""Operators that skip PyTorch's dispatcher when it has nothing to do.

The dispatcher looks at keys: those of the tensors say where they are and whether they are ordinary
dense tensors; those of the thread say whether autocast, a transform of `torch.func`, tracing or
profiling is active. If there is nothing of this kind, or only a gradient to record, the kernel is called
directly: the dispatcher would take longer than the rest of a small call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

_any_requires_grad = torch._C._any_requires_grad
_below_autograd = torch._C._AutoDispatchBelowAutograd
_dispatch_keys = torch._C._dispatch_keys
_excluded_keys = torch._C._dispatch_tls_local_exclude_set
_included_keys = torch._C._dispatch_tls_local_include_set
_has_torch_function = torch._C._has_torch_function_variadic
_is_profiling = torch.autograd._profiler_enabled


@dataclass(eq=False)
class Operator:
    """An operator of PyTorch, made by `registration.define`.

    If its parameter may be a number or a tensor, it has one overload for each.

    Attributes:
        kernel: The Python function that computes it.
        types: The types of the arguments in the schema; numbers of other types are converted by the
            dispatcher.
        for_number: The overload for a number; the only one if there is no such parameter.
        for_tensor: The overload for a tensor.
        position: The position of this parameter among the arguments.
        apply: The `autograd.Function` that calls the kernel and records its gradient, or None.
    """

    kernel: Callable[..., Any]
    types: tuple[type, ...]
    for_number: torch._ops.OpOverload
    for_tensor: torch._ops.OpOverload
    position: int
    apply: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if not can_skip_dispatcher(args, self.types):
            return self.overload(args)(*args)
        if self.apply is not None and _any_requires_grad(*args) and records_gradients():
            return self.apply(*args)
        with _below_autograd():
            return self.kernel(*args)

    def below_autograd(self, *args: Any) -> Any:
        """Compute without derivatives."""
        direct = can_skip_dispatcher(args, self.types)
        with _below_autograd():
            return (self.kernel if direct else self.overload(args))(*args)

    def overload(self, args: tuple[Any, ...]) -> torch._ops.OpOverload:
        return self.for_tensor if isinstance(args[self.position], Tensor) else self.for_number


def _bits(*keys: DispatchKey) -> int:
    return reduce(or_, map(DispatchKeySet, keys)).raw_repr()


def _ordinary(*keys: DispatchKey) -> tuple[int, int]:
    """The keys of an ordinary tensor, and those of a tensor created in inference mode."""
    return _bits(*keys), _bits(*keys[:2])


_VIEWS = DispatchKey.ADInplaceOrView
_ORDINARY_TENSORS = frozenset(
    _ordinary(DispatchKey.CPU, DispatchKey.AutocastCPU, DispatchKey.AutogradCPU, _VIEWS)
    + _ordinary(DispatchKey.CUDA, DispatchKey.AutocastCUDA, DispatchKey.AutogradCUDA, _VIEWS)
)
_ORDINARY_THREADS = frozenset(
    (_bits(DispatchKey.BackendSelect, _VIEWS), _bits(DispatchKey.BackendSelect))
)
_AUTOCAST = _bits(DispatchKey.AutocastCPU, DispatchKey.AutocastCUDA)
_AUTOGRAD = _bits(DispatchKey.AutogradOther)


def can_skip_dispatcher(args: tuple[Any, ...], types: tuple[type, ...]) -> bool:
    """Whether the dispatcher would only differentiate, or pass the arguments on as they are."""
    if (
        is_dynamo_compiling()
        or _has_torch_function(*args)
        or _is_profiling()
        or forward_ad._current_level >= 0
    ):
        return False
    if (
        _included_keys().raw_repr() not in _ORDINARY_THREADS
        or _excluded_keys().raw_repr() & _AUTOCAST != _AUTOCAST
    ):
        return False
    for argument, declared in zip(args, types, strict=True):
        if argument is None or (declared is not Tensor and type(argument) is declared):
            continue
        if not isinstance(argument, Tensor):
            return False
        if _dispatch_keys(argument).raw_repr() not in _ORDINARY_TENSORS:
            return False
    return True


def records_gradients() -> bool:
    """Whether gradients are recorded here, for tensors that require them."""
    return torch.is_grad_enabled() and not _excluded_keys().raw_repr() & _AUTOGRAD
