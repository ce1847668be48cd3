"""The maps as modules: `forward(scores, dim=None, mask=None)`; a `dim` overrides the module's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

from torch import Tensor, nn

from fenchel.checks import check_number
from fenchel.maps.budget import BUDGET, budget
from fenchel.maps.entmax import entmax
from fenchel.maps.normmax import NORMMAX, normmax
from fenchel.maps.operator import MapOperator
from fenchel.maps.softmax import softmax
from fenchel.maps.sparsemax import sparsemax
from fenchel.mechanisms.exponent import Alpha, Exponent, brief, describe


class Map(nn.Module, ABC):
    """A map along `dim`; the subclass says which."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, scores: Tensor, dim: int | None = None, mask: Tensor | None = None) -> Tensor:
        return self._map(scores, self.dim if dim is None else dim, mask)

    @abstractmethod
    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


def hold_parameter(module: nn.Module, operator: MapOperator[Any], value: float | Tensor) -> None:
    """Hold the parameter of a map; a number is looked at now, a tensor where the map looks at it."""
    if not isinstance(value, Tensor):
        check_number(value, name=operator.parameter, above=operator.above, or_tensor=True)
    hold(module, operator.parameter, value)


def hold(module: nn.Module, name: str, value: float | Tensor) -> None:
    """Set `module.name`: a tensor that is not learned becomes a buffer, which moves with the module."""
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value, persistent=False)
    else:
        setattr(module, name, value)


@final
class Softmax(Map):
    """`fenchel.softmax`: the dense map, with masks.

    >>> import torch
    >>> Softmax()(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.5741, 0.3482, 0.0777])
    """

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return softmax(scores, dim, mask=mask)


@final
class Sparsemax(Map):
    """`fenchel.sparsemax`: the Euclidean projection onto the simplex.

    >>> import torch
    >>> Sparsemax(dim=0)(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return sparsemax(scores, dim, mask=mask)


@final
class Entmax(Map):
    """`fenchel.entmax`, with α fixed or learned; `.alpha` gives the current value.

    Args:
        alpha: a number, a tensor, an `nn.Parameter`, or `"learned"`: α = 1 + sigmoid(a), which
            starts at 1.5 and stays between softmax and sparsemax.
        heads: α has one value a head, (heads,), and scores have shape (…, heads, queries, keys).
        dim: the dimension that sums to one.

    >>> import torch
    >>> Entmax(alpha=1.5)(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.6740, 0.3260, 0.0000])
    >>> layer = Entmax(alpha="learned", heads=2)
    >>> layer(torch.randn(3, 2, 4, 5)).sum(-1).allclose(torch.ones(3, 2, 4)), layer.alpha
    (True, tensor([1.5000, 1.5000], grad_fn=<AddBackward0>))
    """

    def __init__(self, alpha: Alpha = 1.5, heads: int | None = None, dim: int = -1) -> None:
        super().__init__(dim)
        self.exponent = Exponent(alpha, heads)

    @property
    def alpha(self) -> float | Tensor:
        return self.exponent()

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        alpha = self.alpha
        if self.exponent.heads is not None and isinstance(alpha, Tensor) and alpha.ndim == 1:
            alpha = alpha.reshape(-1, 1, 1)
        return entmax(scores, alpha, dim, mask=mask)

    def extra_repr(self) -> str:
        heads = "" if self.exponent.heads is None else f", heads={self.exponent.heads}"
        return f"{describe(self.exponent)}{heads}, dim={self.dim}"


@final
class Normmax(Map):
    """`fenchel.normmax`: sparse, and flat on its support.

    >>> import torch
    >>> Normmax(alpha=2.0)(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]))
    tensor([0.0000, 0.0239, 0.1746, 0.3254, 0.4761])
    """

    def __init__(self, alpha: Alpha = 2.0, dim: int = -1) -> None:
        super().__init__(dim)
        self.exponent = Exponent(alpha, above=NORMMAX.above)

    @property
    def alpha(self) -> float | Tensor:
        return self.exponent()

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return normmax(scores, self.alpha, dim, mask=mask)

    def extra_repr(self) -> str:
        return f"{describe(self.exponent)}, dim={self.dim}"


@final
class Budget(Map):
    """`fenchel.budget`: k units, at most one an entry.

    >>> import torch
    >>> Budget(k=3)(torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0]))
    tensor([0.0000, 0.2500, 0.7500, 1.0000, 1.0000])
    """

    k: float | Tensor

    def __init__(self, k: float | Tensor = 2, dim: int = -1) -> None:
        super().__init__(dim)
        hold_parameter(self, BUDGET, k)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return budget(scores, self.k, dim, mask=mask)

    def extra_repr(self) -> str:
        return f"k={brief(self.k)}, dim={self.dim}"
