"""The α of a layer: a constant, a parameter, or learned between softmax and sparsemax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from fenchel.checks import check_count, describe_bound
from fenchel.errors import FenchelError
from fenchel.operators.layout import HALF

Alpha = float | Sequence[float] | Tensor | str
Start = float | str


class Exponent(nn.Module):
    """Holds α; calling it gives the current value.

    A number stays a number. A sequence or a tensor is a constant that moves with the layer and is
    not saved; a parameter is kept as it is. `"learned"` is α = 1 + sigmoid(a), one per head if
    `heads` is given, or a single one for all heads if they are `tied`.

    Tensors keep at least single precision when the layer is cast to half precision: rounded to
    bfloat16, 1.5025 would be 1.5, and a learned α close to 1 or 2 would stop learning.

    Args:
        alpha: α as above.
        heads: The number of heads, or None for a single α.
        start: The initial value of a learned α: a number between 1 and 2, or "random", which draws a
            from a standard normal distribution with PyTorch's generator.
        tied: Whether all heads share one learned α.
        above: The lower bound of α.

    >>> Exponent("learned", heads=2)()
    tensor([1.5000, 1.5000], grad_fn=<AddBackward0>)
    >>> Exponent("learned", heads=2, start=1.25, tied=True).half()()
    tensor([1.2500, 1.2500], grad_fn=<ExpandBackward0>)
    """

    def __init__(
        self,
        alpha: Alpha,
        heads: int | None = None,
        *,
        start: Start = 1.5,
        tied: bool = False,
        above: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if heads is not None:
            check_count(heads, "heads")
        check_start(start, "start")
        self.heads, self.start, self.is_learned = heads, start, isinstance(alpha, str)
        self._numbers: list[float] = []
        dtype = torch.promote_types(dtype or torch.get_default_dtype(), torch.float32)
        if isinstance(alpha, str):
            if alpha != "learned":
                raise FenchelError(f'alpha must be a number, a tensor or "learned", got {alpha!r}')
            shape = () if heads is None else (1 if tied else heads,)
            self.logit = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
            self.reset_parameters()
        elif isinstance(alpha, nn.Parameter):
            self.value = alpha
        elif isinstance(alpha, Tensor):
            self.register_buffer("value", alpha, persistent=False)
        elif isinstance(alpha, Sequence):
            self._numbers = [_above(a, above) for a in alpha]
            if not self._numbers:
                raise FenchelError(f"alpha must have at least one value, got {alpha!r}")
            constant = torch.tensor(self._numbers, device=device, dtype=dtype)
            self.register_buffer("value", constant, persistent=False)
        else:
            self.value = _above(alpha, above)
        self._check_heads()

    def forward(self) -> float | Tensor:
        if not self.is_learned:
            return self.value
        alpha = 1 + torch.sigmoid(self.logit)
        return alpha.expand(self.heads) if self.heads and self.logit.numel() == 1 else alpha

    @property
    def setting(self) -> float | Tensor | str:
        """What α was set to: `"learned"`, a number or a tensor."""
        return "learned" if self.is_learned else self.value

    def starting_logit(self) -> Tensor:
        """The initial logit a of a learned α, on the CPU; a random one is drawn at every call."""
        options: Any = {"dtype": self.logit.dtype, "device": "cpu"}
        if self.start == "random":
            return torch.randn(self.logit.shape, **options)
        start = float(self.start)
        return torch.full(self.logit.shape, math.log((start - 1) / (2 - start)), **options)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set α to its initial value, also after `to_empty` of a layer made on the device `meta`."""
        if self.is_learned:
            self.logit.copy_(self.starting_logit())
        elif self._numbers and isinstance(self.value, Tensor):
            self.value.copy_(torch.tensor(self._numbers))

    def _check_heads(self) -> None:
        value = self()
        fits = not isinstance(value, Tensor) or value.ndim != 1 or value.shape[0] in (1, self.heads)
        if self.heads is not None and not fits:
            raise FenchelError(
                f"alpha must have {self.heads} values, one per head, got {value.shape[0]}"
            )

    def _apply(self, fn: Any, recurse: bool = True) -> Exponent:
        def at_least_single(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return tensor.float().to(moved.device) if moved.dtype in HALF else moved

        return super()._apply(at_least_single, recurse)


def check_start(start: Start, name: str) -> None:
    """Raise unless `start` is a valid initial value of a learned α."""
    number = float(start) if isinstance(start, Real) else 0.0
    if start != "random" and not 1 < number < 2:
        raise FenchelError(f'{name} must be strictly between 1 and 2 or "random", got {start!r}')


def brief(value: Any) -> str:
    """A setting for the repr of a layer; large tensors are shown by their shape."""
    if not isinstance(value, Tensor):
        return repr(value)
    few = value.numel() <= 16 and not value.is_meta
    return str(value.tolist()) if few else f"tensor of shape {tuple(value.shape)}"


def _above(alpha: Any, least: float) -> float:
    number = float(alpha) if isinstance(alpha, Real) and not isinstance(alpha, bool) else least
    if not least < number < torch.inf:
        raise FenchelError(f"alpha must be {describe_bound(least)}, got {alpha!r}")
    return number
