"""The maps as modules: `forward(scores, dim=None, mask=None)`; a `dim` overrides the module's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from torch import Tensor

from fenchel.maps.budget import BUDGET, budget
from fenchel.maps.entmax import entmax
from fenchel.maps.normmax import NORMMAX, normmax
from fenchel.maps.softmax import softmax
from fenchel.maps.sparsemax import sparsemax
from fenchel.mechanisms.exponent import Alpha, Exponent
from fenchel.nn.settings import Settings, WithExponent, hold_parameter


class Map(Settings, ABC):
    """A map along `dim`; the subclass says which."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, scores: Tensor, dim: int | None = None, mask: Tensor | None = None) -> Tensor:
        return self._map(scores, self.dim if dim is None else dim, mask)

    @abstractmethod
    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...


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
class Entmax(WithExponent, Map):
    """`fenchel.entmax`, with α fixed or learned; `.alpha` gives the current value.

    Args:
        alpha: a number, a tensor, an `nn.Parameter`, or `"learned"`: α = 1 + sigmoid(a), which
            starts at 1.5 and stays between softmax and sparsemax.
        dim: the dimension that sums to one.
        heads: α has one value per head, (heads,), and scores have shape (…, heads, queries, keys).

    >>> import torch
    >>> Entmax(alpha=1.5)(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.6740, 0.3260, 0.0000])
    >>> layer = Entmax(alpha="learned", heads=2)
    >>> layer(torch.randn(3, 2, 4, 5)).sum(-1).allclose(torch.ones(3, 2, 4)), layer.alpha
    (True, tensor([1.5000, 1.5000], grad_fn=<AddBackward0>))
    """

    def __init__(self, alpha: Alpha = 1.5, dim: int = -1, *, heads: int | None = None) -> None:
        super().__init__(dim)
        self.exponent = Exponent(alpha, heads)

    @property
    def heads(self) -> int | None:
        return self.exponent.heads

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        alpha = self.alpha
        if self.heads is not None and isinstance(alpha, Tensor) and alpha.ndim == 1:
            alpha = alpha.reshape(-1, 1, 1)
        return entmax(scores, alpha, dim, mask=mask)


@final
class Normmax(WithExponent, Map):
    """`fenchel.normmax`: sparse, and flat on its support.

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
    """`fenchel.budget`: k units, at most one an entry.

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
