"""The α of a layer: a constant, a parameter, or learned between softmax and sparsemax."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from fenchel.checks import check_count, describe_bound
from fenchel.errors import rule

Alpha = float | Sequence[float] | Tensor | str


class Exponent(nn.Module):
    """Holds α; calling it gives the current value.

    A number stays a number. A sequence or a tensor is a constant that moves with the layer and is
    not saved; a parameter is kept as it is. `"learned"` is α = 1 + sigmoid(a), one a head if
    `heads` is given; a starts at 0, that is α at 1.5.

    >>> Exponent("learned", heads=2)()
    tensor([1.5000, 1.5000], grad_fn=<AddBackward0>)
    """

    def __init__(
        self,
        alpha: Alpha,
        heads: int | None = None,
        *,
        above: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if heads is not None:
            check_count(heads, "alpha has one value a head")
        self.heads, self.is_learned = heads, isinstance(alpha, str)
        self._numbers: list[float] = []
        if isinstance(alpha, str):
            if alpha != "learned":
                raise rule("alpha must be known", expected='a number or "learned"', got=repr(alpha))
            shape = () if heads is None else (heads,)
            self.logit = nn.Parameter(torch.zeros(shape, device=device, dtype=dtype))
        elif isinstance(alpha, nn.Parameter):
            self.value = alpha
        elif isinstance(alpha, Tensor):
            self.register_buffer("value", alpha, persistent=False)
        elif isinstance(alpha, Sequence):
            self._numbers = [_above(a, above) for a in alpha]
            if not self._numbers:
                raise rule("alpha has a value", expected="at least one number", got=repr(alpha))
            constant = torch.tensor(self._numbers, device=device, dtype=dtype)
            self.register_buffer("value", constant, persistent=False)
        else:
            self.value = _above(alpha, above)
        self._check_heads()

    def forward(self) -> float | Tensor:
        return 1 + torch.sigmoid(self.logit) if self.is_learned else self.value

    @property
    def setting(self) -> float | Tensor | str:
        """What α was set to: `"learned"`, a number or a tensor."""
        return "learned" if self.is_learned else self.value

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Where it starts, for a layer made on the device `meta` and then given memory."""
        if self.is_learned:
            self.logit.zero_()
        elif self._numbers and isinstance(self.value, Tensor):
            self.value.copy_(torch.tensor(self._numbers))

    def _check_heads(self) -> None:
        value = self()
        fits = not isinstance(value, Tensor) or value.ndim != 1 or value.shape[0] in (1, self.heads)
        if self.heads is not None and not fits:
            expected, got = f"{self.heads} values", f"shape {tuple(value.shape)}"
            raise rule("alpha has one value a head", expected=expected, got=got)


def brief(value: Any) -> str:
    """A setting, short enough for the repr of a layer: of a large tensor only the shape."""
    if not isinstance(value, Tensor):
        return repr(value)
    few = value.numel() <= 16 and not value.is_meta
    return str(value.tolist()) if few else f"tensor of shape {tuple(value.shape)}"


def _above(alpha: Any, least: float) -> float:
    number = float(alpha) if isinstance(alpha, Real) and not isinstance(alpha, bool) else least
    if not least < number < torch.inf:
        bound = describe_bound(least)
        raise rule(f"alpha must be {bound}", expected=f"a number {bound}", got=repr(alpha))
    return number
