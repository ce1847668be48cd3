"""Small output layers, and the loss that they have without fusion."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import fenchel
from fenchel.operators import linear_chunks
from tests.allocations import Allocations

ROWS, WIDTH, CLASSES = 11, 4, 7


def layer(dtype: torch.dtype, rows: int = ROWS) -> dict[str, Tensor]:
    """Inputs, weight and bias of an output layer, and α."""
    shapes = {"hidden": (rows, WIDTH), "weight": (CLASSES, WIDTH), "bias": (CLASSES,)}
    made = {name: torch.randn(shape, dtype=dtype) for name, shape in shapes.items()}
    made["alpha"] = torch.tensor(1.4, dtype=dtype)
    return {name: value.requires_grad_() for name, value in made.items()}


def some_target(kind: str, dtype: torch.dtype, rows: int = ROWS) -> Tensor:
    if kind == "probabilities":
        return torch.softmax(2 * torch.randn(rows, CLASSES, dtype=torch.float32), -1).to(dtype)
    target = torch.arange(rows) % CLASSES
    target[1::5] = -100
    return target


def unfused(hidden: Tensor, weight: Tensor, target: Tensor, alpha: Any, **options: Any) -> Tensor:
    scores = F.linear(hidden, weight, options.pop("bias", None))
    options.pop("chunk_rows", None)
    options["weight"] = options.pop("class_weight", None)
    return fenchel.entmax_loss(scores, target, alpha, **options)


class Inside(Allocations):
    """An operator is opaque, what its kernel does is not."""

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function.overloadpacket is torch.ops.fenchel.linear_entmax_loss:
            with self:
                return linear_chunks.chunked_loss(*args)
        return super().call(function, args, kwargs)
