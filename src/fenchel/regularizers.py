"""Regularizers Ω: value, conjugate, map and loss of one and the same convex function.

Everything follows from Ω on the simplex: Ω*(x) = max_p ⟨p, x⟩ − Ω(p) is `max`, its gradient is `map`,
and Ω(q) + Ω*(x) − ⟨q, x⟩ is `loss`. A temperature γ multiplies Ω.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, final

import torch
from torch import Tensor

from fenchel.autocast import rounded_like
from fenchel.checks import canonical_dim, check_number, check_parameter, check_scores
from fenchel.kernels.reference.deformed import tsallis, tsallis_derivative
from fenchel.kernels.reference.entmax_loss import counted
from fenchel.kernels.reference.fusedmax import fusedmax_penalty
from fenchel.kernels.reference.normmax import norm, norm_derivative
from fenchel.kernels.reference.oscarmax import oscarmax_penalty
from fenchel.kernels.reference.penalties import maxima_of_pairs, total_variation
from fenchel.kernels.reference.pnormmax import half_squared_norm, half_squared_norm_derivative
from fenchel.kernels.rows import at_least_float32
from fenchel.losses.functional import fenchel_young_loss
from fenchel.losses.operator import entmax_row_loss
from fenchel.losses.target import probabilities
from fenchel.maps.entmax import ENTMAX
from fenchel.maps.fusedmax import FUSEDMAX
from fenchel.maps.grouped import GroupedMapOperator
from fenchel.maps.normmax import NORMMAX
from fenchel.maps.operator import MapOperator
from fenchel.maps.oscarmax import OSCARMAX
from fenchel.maps.pnormmax import PNORMMAX
from fenchel.maps.rule import parts
from fenchel.maps.value import ValueOperator

ENTMAX_VALUE = ValueOperator(ENTMAX, tsallis, tsallis_derivative)
NORMMAX_VALUE = ValueOperator(NORMMAX, norm, norm_derivative)
PNORMMAX_VALUE = ValueOperator(PNORMMAX, half_squared_norm, half_squared_norm_derivative)


def _penalised(map_operator: GroupedMapOperator, penalty: Callable[..., Tensor]) -> ValueOperator:
    """Ω* of ½‖p‖² + λ penalty(p), the penalty taken from the groups."""

    def omega(p: Tensor, groups: Tensor, value: Any, dim: int, keepdim: bool) -> Tensor:
        return p.square().sum(dim, keepdim=keepdim) / 2 + value * penalty(p, groups, dim, keepdim)

    def slope(p: Tensor, groups: Tensor, value: Any, dim: int, keepdim: bool) -> Tensor:
        return penalty(p, groups, dim, keepdim)

    return ValueOperator(map_operator, omega, slope)


FUSEDMAX_VALUE = _penalised(FUSEDMAX, fusedmax_penalty)
OSCARMAX_VALUE = _penalised(OSCARMAX, oscarmax_penalty)


class Regularizer(ABC):
    """A strictly convex Ω on the simplex; subclasses say what γ = 1 means, γ is handled here."""

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = check_number(gamma, name="gamma", above=0)

    def value(self, p: Tensor, dim: int = -1) -> Tensor:
        """Ω(p), along `dim`."""
        check_scores(p, "p")
        dim = canonical_dim(dim, p.ndim)
        return rounded_like(p, self.gamma * self._value(at_least_float32(p), dim))

    def max(self, scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
        """Ω*(x) = max_p ⟨p, x⟩ − Ω(p), the smoothed maximum; −inf for a row with nothing left."""
        check_scores(scores)
        return rounded_like(scores, self.gamma * self._max(self._cooled(scores), dim, mask))

    def map(self, scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
        """∇Ω*(x), the probabilities that attain the maximum."""
        check_scores(scores)
        return rounded_like(scores, self._map(self._cooled(scores), dim, mask))

    def loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        """The Fenchel–Young loss; options are those of `fenchel.fenchel_young_loss`."""
        return fenchel_young_loss(scores, target, self, **options)

    def row_loss(self, scores: Tensor, target: Tensor, ignore_index: int, dim: int = -1) -> Tensor:
        """The loss along the last dimension, one a row, not reduced.

        `dim` is where the rows were before they were moved there, and are in a tensor parameter.
        """
        loss = self._moved(scores, dim)._row_loss(self._cooled(scores), target, ignore_index)
        return rounded_like(scores, self.gamma * loss)

    def _moved(self, rows: Tensor, dim: int) -> Regularizer:
        """This Ω for rows that have been moved from `dim` to the last dimension."""
        return self

    def _cooled(self, scores: Tensor) -> Tensor:
        """x/γ, in float32 at least: half precision is rounded once, at the end."""
        return at_least_float32(scores) / self.gamma

    @abstractmethod
    def _value(self, p: Tensor, dim: int) -> Tensor: ...

    def _value_of_target(self, q: Tensor, scores: Tensor) -> Tensor:
        """Ω(q) along the last dimension, where scores of −inf say which entries there are."""
        return self._value(q, -1)

    @abstractmethod
    def _max(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...

    @abstractmethod
    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...

    def _row_loss(self, scores: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        q = probabilities(target, scores, ignore_index)
        attained = torch.where(q > 0, q * scores, 0.0).sum(-1)
        loss = self._value_of_target(q, scores) + self._max(scores, -1, None) - attained
        loss = torch.where(scores.isneginf().all(-1), torch.inf, loss)
        return torch.where(counted(target, ignore_index), loss, 0.0)


class _Parametric(Regularizer):
    """An Ω with a parameter of the map's name, a number or a tensor with one value a row."""

    _operator: MapOperator[Any]
    _conjugate: ValueOperator

    def __init__(self, parameter: float | Tensor, gamma: float) -> None:
        super().__init__(gamma)
        name, above = self._operator.parameter, self._operator.above
        if not isinstance(parameter, Tensor):
            check_number(parameter, name=name, above=above, or_tensor=True)
        setattr(self, name, parameter)

    def __repr__(self) -> str:
        name = self._operator.parameter
        return f"{type(self).__name__}({name}={self._given}, gamma={self.gamma})"

    @property
    def _given(self) -> float | Tensor:
        return getattr(self, self._operator.parameter)

    def _parameter(self, scores: Tensor, dim: int) -> float | Tensor:
        """The parameter, with as many dimensions as the scores if it is a tensor."""
        name, above = self._operator.parameter, self._operator.above
        return check_parameter(self._given, scores, dim, name=name, above=above)

    def _moved(self, rows: Tensor, dim: int) -> Regularizer:
        parameter = self._parameter(rows.movedim(-1, dim), dim)
        moved = copy(self)
        if isinstance(parameter, Tensor):
            setattr(moved, self._operator.parameter, parameter.movedim(dim, -1))
        return moved

    def _max(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return self._conjugate(scores, self._given, dim, mask)

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        return parts(self._operator(scores, self._given, dim, mask))[0]


class _Entropy(_Parametric):
    """What the negative entropies share: they are Tsallis' at some α."""

    _operator, _conjugate = ENTMAX, ENTMAX_VALUE
    alpha: float | Tensor

    def _value(self, p: Tensor, dim: int) -> Tensor:
        return tsallis(p, self._parameter(p, dim), dim)

    def _row_loss(self, scores: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        return entmax_row_loss(scores, target, self._parameter(scores, -1), ignore_index)


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


@final
class Norm(_Parametric):
    r"""Ω(p) = γ ‖p‖_α; its map is normmax.

    >>> import torch, fenchel
    >>> fenchel.Norm(alpha=2.0).max(torch.tensor([1.0, 0.5, -1.0]))
    tensor(0.0886)
    """

    _operator, _conjugate = NORMMAX, NORMMAX_VALUE
    alpha: float | Tensor

    def __init__(self, alpha: float | Tensor = 2.0, gamma: float = 1.0) -> None:
        super().__init__(alpha, gamma)

    def _value(self, p: Tensor, dim: int) -> Tensor:
        return norm(p, self._parameter(p, dim), dim)


@final
class PNorm(_Parametric):
    r"""Ω(p) = γ ½‖p‖_s², with the exponent s of `pnormmax`; its map is pnormmax.

    >>> import torch, fenchel
    >>> fenchel.PNorm(1.5).max(torch.tensor([1.0, 0.5, -1.0]))
    tensor(0.5276)
    """

    _operator, _conjugate = PNORMMAX, PNORMMAX_VALUE
    p: float | Tensor

    def __init__(self, p: float | Tensor = 1.5, gamma: float = 1.0) -> None:
        super().__init__(p, gamma)

    def _value(self, p: Tensor, dim: int) -> Tensor:
        return half_squared_norm(p, self._parameter(p, dim), dim)


class _Penalised(_Parametric):
    """½‖p‖² and a penalty of some strength."""

    strength: float | Tensor

    @abstractmethod
    def _penalty(self, p: Tensor, present: Tensor) -> Tensor:
        """The penalty along the last dimension, which stays with size 1."""

    def _value(self, p: Tensor, dim: int) -> Tensor:
        return self._value_among(p, torch.ones_like(p, dtype=torch.bool), dim)

    def _value_of_target(self, q: Tensor, scores: Tensor) -> Tensor:
        return self._value_among(q, ~scores.isneginf(), -1)

    def _value_among(self, p: Tensor, present: Tensor, dim: int) -> Tensor:
        strength, rows = self._parameter(p, dim), p.movedim(dim, -1)
        if isinstance(strength, Tensor):
            strength = strength.movedim(dim, -1)
        penalty = strength * self._penalty(rows, present.movedim(dim, -1))
        return (rows.square().sum(-1, keepdim=True) / 2 + penalty).squeeze(-1)


@final
class Fused(_Penalised):
    r"""Ω(p) = γ (½‖p‖² + λ Σ |p_{i+1} − p_i|), with λ the strength; its map is fusedmax.

    >>> import torch, fenchel
    >>> fenchel.Fused(strength=0.1).max(torch.tensor([0.0, 0.9, 1.0, 0.7, 0.1]))
    tensor(0.6408)
    """

    _operator, _conjugate = FUSEDMAX, FUSEDMAX_VALUE

    def __init__(self, strength: float | Tensor = 0.1, gamma: float = 1.0) -> None:
        super().__init__(strength, gamma)

    def _penalty(self, p: Tensor, present: Tensor) -> Tensor:
        return total_variation(p, present)


@final
class Oscar(_Penalised):
    r"""Ω(p) = γ (½‖p‖² + λ Σ_{i<j} max(p_i, p_j)), with λ the strength; its map is oscarmax.

    >>> import torch, fenchel
    >>> fenchel.Oscar(strength=0.1).max(torch.tensor([0.0, 0.7, -0.1, 0.8, 0.2]))
    tensor(0.1533)
    """

    _operator, _conjugate = OSCARMAX, OSCARMAX_VALUE

    def __init__(self, strength: float | Tensor = 0.01, gamma: float = 1.0) -> None:
        super().__init__(strength, gamma)

    def _penalty(self, p: Tensor, present: Tensor) -> Tensor:
        return maxima_of_pairs(p, present)
