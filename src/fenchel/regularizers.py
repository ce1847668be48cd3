"""Regularizers Ω: value, conjugate, map and loss of one and the same convex function.

Everything follows from Ω on the simplex: Ω*(x) = max_p ⟨p, x⟩ − Ω(p) is `max`, its gradient is `map`,
and Ω(q) + Ω*(x) − ⟨q, x⟩ is `loss`. A temperature γ multiplies Ω.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import torch
from torch import Tensor

from fenchel.checks import check_number, check_parameter, check_scores
from fenchel.kernels.reference.deformed import tsallis, tsallis_derivative
from fenchel.kernels.reference.entmax_loss import counted
from fenchel.kernels.reference.normmax import norm, norm_derivative
from fenchel.kernels.rows import at_least_float32
from fenchel.losses.functional import fenchel_young_loss
from fenchel.losses.operator import entmax_row_loss
from fenchel.losses.target import probabilities
from fenchel.maps.entmax import ENTMAX
from fenchel.maps.normmax import NORMMAX
from fenchel.maps.value import ValueOperator

ENTMAX_VALUE = ValueOperator(ENTMAX, tsallis, tsallis_derivative)
NORMMAX_VALUE = ValueOperator(NORMMAX, norm, norm_derivative)


class Regularizer(ABC):
    """A strictly convex Ω on the simplex; subclasses say what γ = 1 means, γ is handled here."""

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = check_number(gamma, name="gamma", above=0)

    def value(self, p: Tensor, dim: int = -1) -> Tensor:
        """Ω(p), along `dim`."""
        return (self.gamma * self._value(at_least_float32(p), dim)).to(p.dtype)

    def max(self, scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
        """Ω*(x) = max_p ⟨p, x⟩ − Ω(p), the smoothed maximum; −inf for a row with nothing left."""
        check_scores(scores)
        return (self.gamma * self._max(self._cooled(scores), dim, mask)).to(scores.dtype)

    def map(self, scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
        """∇Ω*(x), the probabilities that attain the maximum."""
        check_scores(scores)
        return self._map(self._cooled(scores), dim, mask).to(scores.dtype)

    def loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        """The Fenchel–Young loss; options are those of `fenchel.fenchel_young_loss`."""
        return fenchel_young_loss(scores, target, self, **options)

    def row_loss(self, scores: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        """The loss along the last dimension, one a row, not reduced."""
        loss = self._row_loss(self._cooled(scores), target, ignore_index)
        return (self.gamma * loss).to(scores.dtype)

    def _cooled(self, scores: Tensor) -> Tensor:
        """x/γ, in float32 at least: half precision is rounded once, at the end."""
        return at_least_float32(scores) / self.gamma

    @abstractmethod
    def _value(self, p: Tensor, dim: int) -> Tensor: ...

    @abstractmethod
    def _max(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...

    @abstractmethod
    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...

    def _row_loss(self, scores: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        q = probabilities(target, scores, ignore_index)
        attained = torch.where(q > 0, q * scores, 0.0).sum(-1)
        loss = self._value(q, -1) + self._max(scores, -1, None) - attained
        loss = torch.where(scores.isneginf().all(-1), torch.inf, loss)
        return torch.where(counted(target, ignore_index), loss, 0.0)


class _Entropy(Regularizer):
    """What the negative entropies share: they are Tsallis' at some α."""

    def __init__(self, alpha: float | Tensor, gamma: float) -> None:
        super().__init__(gamma)
        if not isinstance(alpha, Tensor):
            check_number(alpha, name="alpha", above=0)
        self._alpha = alpha

    def _value(self, p: Tensor, dim: int) -> Tensor:
        return tsallis(p, self._alpha, dim)

    def _max(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return ENTMAX_VALUE(scores, self._alpha, dim, mask)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return ENTMAX(scores, self._alpha, dim, mask)

    def _row_loss(self, scores: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        alpha = check_parameter(self._alpha, scores, -1, name="alpha", above=0)
        return entmax_row_loss(scores, target, alpha, ignore_index)


@final
class Shannon(_Entropy):
    r"""Ω(p) = γ Σ p log p; its map is softmax and its conjugate log-sum-exp.

    >>> import torch, fenchel
    >>> fenchel.Shannon().max(torch.tensor([1.0, 0.5, -1.0]))
    tensor(1.5550)
    """

    def __init__(self, gamma: float = 1.0) -> None:
        super().__init__(1.0, gamma)

    def __repr__(self) -> str:
        return f"Shannon(gamma={self.gamma})"


@final
class Gini(_Entropy):
    r"""Ω(p) = γ (‖p‖² − 1)/2; its map is sparsemax.

    >>> import torch, fenchel
    >>> fenchel.Gini(gamma=0.5).map(torch.tensor([0.5, 0.25, -0.5]))
    tensor([0.7500, 0.2500, 0.0000])
    """

    def __init__(self, gamma: float = 1.0) -> None:
        super().__init__(2.0, gamma)

    def __repr__(self) -> str:
        return f"Gini(gamma={self.gamma})"


@final
class Tsallis(_Entropy):
    r"""Ω(p) = γ (Σ p^α − 1)/(α(α−1)); its map is α-entmax. α may be a tensor, as in `entmax`.

    >>> import torch, fenchel
    >>> omega, x = fenchel.Tsallis(alpha=1.5), torch.tensor([1.0, 0.5, -1.0])
    >>> omega.map(x), omega.max(x), omega.value(omega.map(x))
    (tensor([0.6740, 0.3260, 0.0000]), tensor(1.1844), tensor(-0.3474))
    """

    def __init__(self, alpha: float | Tensor = 1.5, gamma: float = 1.0) -> None:
        super().__init__(alpha, gamma)

    @property
    def alpha(self) -> float | Tensor:
        return self._alpha

    def __repr__(self) -> str:
        return f"Tsallis(alpha={self.alpha}, gamma={self.gamma})"


@final
class Norm(Regularizer):
    r"""Ω(p) = γ ‖p‖_α; its map is normmax.

    >>> import torch, fenchel
    >>> fenchel.Norm(alpha=2.0).max(torch.tensor([1.0, 0.5, -1.0]))
    tensor(0.0886)
    """

    def __init__(self, alpha: float | Tensor = 2.0, gamma: float = 1.0) -> None:
        super().__init__(gamma)
        if not isinstance(alpha, Tensor):
            check_number(alpha, name="alpha", above=1)
        self.alpha = alpha

    def __repr__(self) -> str:
        return f"Norm(alpha={self.alpha}, gamma={self.gamma})"

    def _value(self, p: Tensor, dim: int) -> Tensor:
        return norm(p, self.alpha, dim)

    def _max(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return NORMMAX_VALUE(scores, self.alpha, dim, mask)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return NORMMAX(scores, self.alpha, dim, mask)
