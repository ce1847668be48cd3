"""Structured maps as modules. A strength may be a number, a tensor (kept as a buffer) or a Parameter."""

from __future__ import annotations

from typing import final

from torch import Tensor

from fenchel.maps.fusedmax import fusedmax
from fenchel.maps.fusedmax2d import fusedmax2d
from fenchel.maps.oscarmax import oscarmax
from fenchel.maps.pnormmax import pnormmax
from fenchel.nn.maps import Map
from fenchel.nn.settings import Settings, hold_parameter
from fenchel.operators.maps import FUSEDMAX, FUSEDMAX2D, OSCARMAX, PNORMMAX


@final
class Fusedmax(Map):
    """`fenchel.fusedmax` as a module: equal weights on contiguous segments.

    >>> import torch
    >>> Fusedmax(strength=0.1)(torch.tensor([0.0, 0.9, 1.0, 0.7, 0.1]))
    tensor([0.0000, 0.3833, 0.3833, 0.2333, 0.0000])
    """

    main = "strength"
    strength: float | Tensor

    def __init__(self, strength: float | Tensor = 0.1, dim: int = -1) -> None:
        super().__init__(dim)
        hold_parameter(self, FUSEDMAX, strength)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return fusedmax(scores, self.strength, dim, mask=mask)


@final
class Oscarmax(Map):
    """`fenchel.oscarmax` as a module: clusters of equal weights, not necessarily contiguous.

    >>> import torch
    >>> Oscarmax(strength=0.1)(torch.tensor([0.0, 0.7, -0.1, 0.8, 0.2]))
    tensor([0.0000, 0.4667, 0.0000, 0.4667, 0.0667])
    """

    main = "strength"
    strength: float | Tensor

    def __init__(self, strength: float | Tensor = 0.01, dim: int = -1) -> None:
        super().__init__(dim)
        hold_parameter(self, OSCARMAX, strength)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return oscarmax(scores, self.strength, dim, mask=mask)


@final
class Pnormmax(Map):
    """`fenchel.pnormmax` as a module: sparse, with the squared p-norm as the regularizer.

    >>> import torch
    >>> Pnormmax(p=1.5)(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.8474, 0.1526, 0.0000])
    """

    main = "p"
    p: float | Tensor

    def __init__(self, p: float | Tensor = 1.5, dim: int = -1) -> None:
        super().__init__(dim)
        hold_parameter(self, PNORMMAX, p)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return pnormmax(scores, self.p, dim, mask=mask)


@final
class Fusedmax2d(Settings):
    """`fenchel.fusedmax2d` as a module: equal weights on connected regions of an image.

    >>> import torch
    >>> Fusedmax2d()(torch.tensor([[1.0, 0.9, 0.0], [0.8, 0.9, 0.0]]))
    tensor([[0.2500, 0.2500, 0.0000],
            [0.2500, 0.2500, 0.0000]])
    """

    main = "strength"
    strength: float | Tensor

    def __init__(self, strength: float | Tensor = 0.1) -> None:
        super().__init__()
        hold_parameter(self, FUSEDMAX2D, strength)

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return fusedmax2d(scores, self.strength, mask=mask)
