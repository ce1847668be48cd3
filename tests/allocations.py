"""What operations make room for."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Allocations(TorchDispatchMode):
    """The elements of every piece of memory that an operation inside the block makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[int] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = self.call(function, args, kwargs or {})
        given = {_storage(x) for x in args if isinstance(x, Tensor)}
        for made in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(made, Tensor) and _storage(made) not in given:
                self.elements.append(made.untyped_storage().nbytes() // made.element_size())
        return result

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
