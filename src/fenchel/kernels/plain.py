"""Whether PyTorch has anything to do between the call of an operator and its kernel.

Its dispatcher looks at keys: those of the tensors say where they are and whether their memory is all
there is to know of them, those of the thread name autocast, the transforms of `torch.func`, and
whatever traces or records. Where there is nothing, or derivatives alone, the kernel or the rule may as
well be called without the dispatcher, which takes longer than all else on the host.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

_keys_of = torch._C._dispatch_keys
_included = torch._C._dispatch_tls_local_include_set
_excluded = torch._C._dispatch_tls_local_exclude_set
_overridden = torch._C._has_torch_function_variadic
_profiled = torch.autograd._profiler_enabled


def _bits(*keys: DispatchKey) -> int:
    return reduce(or_, map(DispatchKeySet, keys)).raw_repr()


def _dense(*keys: DispatchKey) -> tuple[int, int]:
    """A tensor as it is everywhere, and one that was made where nothing is differentiated."""
    return _bits(*keys), _bits(*keys[:2])


_VIEWS = DispatchKey.ADInplaceOrView
_DENSE = frozenset(
    _dense(DispatchKey.CPU, DispatchKey.AutocastCPU, DispatchKey.AutogradCPU, _VIEWS)
    + _dense(DispatchKey.CUDA, DispatchKey.AutocastCUDA, DispatchKey.AutogradCUDA, _VIEWS)
)
_NOTHING = frozenset((_bits(DispatchKey.BackendSelect, _VIEWS), _bits(DispatchKey.BackendSelect)))
_AUTOCAST = _bits(DispatchKey.AutocastCPU, DispatchKey.AutocastCUDA)
_AUTOGRAD = _bits(DispatchKey.AutogradOther)


def plain(args: tuple[Any, ...], kinds: tuple[type, ...]) -> bool:
    """Whether PyTorch would pass the arguments on as they are; numbers must be of the declared kinds."""
    if is_dynamo_compiling() or _overridden(*args) or _profiled() or forward_ad._current_level >= 0:
        return False
    if _included().raw_repr() not in _NOTHING or _excluded().raw_repr() & _AUTOCAST != _AUTOCAST:
        return False
    for argument, kind in zip(args, kinds, strict=True):
        if isinstance(argument, Tensor):
            if _keys_of(argument).raw_repr() not in _DENSE:
                return False
        elif argument is not None and type(argument) is not kind:
            return False
    return True


def differentiated(args: tuple[Any, ...]) -> bool:
    """Whether gradients of a plain call may be asked for."""
    wanted = torch.is_grad_enabled() and torch._C._any_requires_grad(*args)
    return wanted and not _excluded().raw_repr() & _AUTOGRAD
