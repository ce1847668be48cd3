"""Maps as modules, called with `(scores, dim=None, mask=None)`; `dim` overrides that of the module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor

from fenchel.maps.budget import budget
from fenchel.maps.entmax import entmax
from fenchel.maps.normmax import normmax
from fenchel.maps.softmax import softmax
from fenchel.maps.sparsemax import sparsemax
from fenchel.mechanisms.exponent import Alpha, Exponent, Start, check_start
from fenchel.nn.settings import Settings, WithExponent, hold_parameter
from fenchel.operators.maps import BUDGET, NORMMAX


class Map(Settings, ABC):
    """A map along the dimension `dim`; subclasses implement `_map`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, scores: Tensor, dim: int | None = None, mask: Tensor | None = None) -> Tensor:
        return self._map(scores, self.dim if dim is None else dim, mask)

    @abstractmethod
    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...


@final
class Softmax(Map):
    """`fenchel.softmax` as a module: softmax with a mask.

    >>> import torch
    >>> Softmax()(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.5741, 0.3482, 0.0777])
    """

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return softmax(scores, dim, mask=mask)


@final
class Logistic(Map):
    """Independent weights σ(x) between 0 and 1 that need not sum to one; zero where masked.

    Reference: Martins & Astudillo (2016), *From Softmax to Sparsemax*, §4.3.

    >>> import torch
    >>> Logistic()(torch.tensor([1.0, 0.5, -1.0]), mask=torch.tensor([True, True, False]))
    tensor([0.7311, 0.6225, 0.0000])
    """

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        weights = torch.sigmoid(scores)
        return weights if mask is None else weights.masked_fill(~mask, 0)


@final
class Sparsemax(Map):
    """`fenchel.sparsemax` as a module: the Euclidean projection onto the simplex.

    >>> import torch
    >>> Sparsemax(dim=0)(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return sparsemax(scores, dim, mask=mask)


@final
class Entmax(WithExponent, Map):
    """`fenchel.entmax` as a module, with a fixed or learned α.

    The attribute `alpha` has the current value.

    Args:
        alpha: A number, a tensor, an `nn.Parameter`, or "learned": α = 1 + sigmoid(a) with a learned
            a, between softmax and sparsemax.
        dim: The dimension that sums to one.
        heads: The number of heads, for one α per head. The scores then have shape
            (…, heads, queries, keys).
        alpha_start: The initial value of a learned α: a number between 1 and 2, or "random", which
            draws a from a standard normal distribution.

    >>> import torch
    >>> Entmax(alpha=1.5)(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.6740, 0.3260, 0.0000])
    >>> layer = Entmax(alpha="learned", heads=2)
    >>> layer(torch.randn(3, 2, 4, 5)).sum(-1).allclose(torch.ones(3, 2, 4)), layer.alpha
    (True, tensor([1.5000, 1.5000], grad_fn=<AddBackward0>))
    """

    def __init__(
        self,
        alpha: Alpha = 1.5,
        dim: int = -1,
        *,
        heads: int | None = None,
        alpha_start: Start = 1.5,
    ) -> None:
        super().__init__(dim)
        check_start(alpha_start, "alpha_start")
        self.exponent = Exponent(alpha, heads, start=alpha_start)

    @property
    def heads(self) -> int | None:
        return self.exponent.heads

    @property
    def alpha_start(self) -> Start:
        return self.exponent.start

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        alpha = self.alpha
        if self.heads is not None and isinstance(alpha, Tensor) and alpha.ndim == 1:
            alpha = alpha.reshape(-1, 1, 1)
        return entmax(scores, alpha, dim, mask=mask)


@final
class Normmax(WithExponent, Map):
    """`fenchel.normmax` as a module: sparse, and nearly uniform on its support for large α.

    >>> import torch
    >>> Normmax(alpha=2.0)(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]))
    tensor([0.0000, 0.0239, 0.1746, 0.3254, 0.4761])
    """

    def __init__(self, alpha: Alpha = 2.0, dim: int = -1) -> None:
        super().__init__(dim)
        self.exponent = Exponent(alpha, above=NORMMAX.above)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return normmax(scores, self.alpha, dim, mask=mask)


@final
class Budget(Map):
    """`fenchel.budget` as a module: weights between 0 and 1 that sum to k.

    >>> import torch
    >>> Budget(k=3)(torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0]))
    tensor([0.0000, 0.2500, 0.7500, 1.0000, 1.0000])
    """

    main = "k"
    k: float | Tensor

    def __init__(self, k: float | Tensor = 2, dim: int = -1) -> None:
        super().__init__(dim)
        hold_parameter(self, BUDGET, k)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return budget(scores, self.k, dim, mask=mask)
