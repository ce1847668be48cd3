"""Regularizers Ω as objects with a value, a conjugate, a map and a loss.

Ω*(x) = max_p ⟨p, x⟩ − Ω(p) over the simplex is `max`, its gradient is `map`, and
Ω(q) + Ω*(x) − ⟨q, x⟩ is `loss`. A temperature γ multiplies Ω.
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
from fenchel.kernels.reference.fusedmax import fusedmax_penalty, total_variation
from fenchel.kernels.reference.normmax import norm, norm_derivative
from fenchel.kernels.reference.oscarmax import maxima_of_pairs, oscarmax_penalty
from fenchel.kernels.reference.pnormmax import half_squared_norm, half_squared_norm_derivative
from fenchel.losses.functional import fenchel_young_loss
from fenchel.operators.conjugate import ConjugateOperator
from fenchel.operators.entmax_loss import entmax_row_loss
from fenchel.operators.layout import at_least_float32
from fenchel.operators.loss_target import probabilities, zero_ignored
from fenchel.operators.map_operator import MapOperator, parts
from fenchel.operators.maps import ENTMAX, FUSEDMAX, NORMMAX, OSCARMAX, PNORMMAX

ENTMAX_VALUE = ConjugateOperator(ENTMAX, tsallis, tsallis_derivative)
NORMMAX_VALUE = ConjugateOperator(NORMMAX, norm, norm_derivative)
PNORMMAX_VALUE = ConjugateOperator(PNORMMAX, half_squared_norm, half_squared_norm_derivative)


def _penalised(map_operator: MapOperator[Any], penalty: Callable[..., Tensor]) -> ConjugateOperator:
    """Ω* of ½‖p‖² + λ penalty(p), where the penalty is computed from the groups."""

    def omega(p: Tensor, groups: Tensor, value: Any, dim: int, keepdim: bool) -> Tensor:
        return p.square().sum(dim, keepdim=keepdim) / 2 + value * penalty(p, groups, dim, keepdim)

    def slope(p: Tensor, groups: Tensor, value: Any, dim: int, keepdim: bool) -> Tensor:
        return penalty(p, groups, dim, keepdim)

    return ConjugateOperator(map_operator, omega, slope)


FUSEDMAX_VALUE = _penalised(FUSEDMAX, fusedmax_penalty)
OSCARMAX_VALUE = _penalised(OSCARMAX, oscarmax_penalty)


class Regularizer(ABC):
    """A strictly convex function Ω on the simplex.

    The temperature `gamma` multiplies Ω: larger values give flatter probabilities. Subclasses define
    Ω at γ = 1.
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = check_number(gamma, name="gamma", above=0)

    def value(self, p: Tensor, dim: int = -1) -> Tensor:
        """Ω(p) along `dim`."""
        check_scores(p, "p")
        dim = canonical_dim(dim, p.ndim)
        return rounded_like(p, self.gamma * self._value(at_least_float32(p), dim))

    def max(self, scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
        """The smoothed maximum Ω*(x) = max_p ⟨p, x⟩ − Ω(p); −inf for a fully masked row."""
        check_scores(scores)
        return rounded_like(scores, self.gamma * self._max(self._cooled(scores), dim, mask))

    def map(self, scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
        """The probabilities ∇Ω*(x) = argmax_p ⟨p, x⟩ − Ω(p)."""
        check_scores(scores)
        return rounded_like(scores, self._map(self._cooled(scores), dim, mask))

    def loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        """The Fenchel–Young loss, with the options of `fenchel.fenchel_young_loss`."""
        return fenchel_young_loss(scores, target, self, **options)

    def row_loss(self, scores: Tensor, target: Tensor, ignore_index: int, dim: int = -1) -> Tensor:
        """One loss per row, along the last dimension.

        `dim` is the dimension of the classes before it was moved there; tensor parameters still have
        it in that place.
        """
        loss = self._moved(scores, dim)._row_loss(self._cooled(scores), target, ignore_index)
        return rounded_like(scores, self.gamma * loss)

    def _moved(self, rows: Tensor, dim: int) -> Regularizer:
        """This Ω for rows that have been moved from `dim` to the last dimension."""
        return self

    def _cooled(self, scores: Tensor) -> Tensor:
        """x/γ, at least in float32: half precision is rounded once, at the end."""
        return at_least_float32(scores) / self.gamma

    @abstractmethod
    def _value(self, p: Tensor, dim: int) -> Tensor: ...

    def _value_of_target(self, q: Tensor, scores: Tensor) -> Tensor:
        """Ω(q) along the last dimension, over the entries whose score is not −inf."""
        return self._value(q, -1)

    @abstractmethod
    def _max(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...

    @abstractmethod
    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor: ...

    def _row_loss(self, scores: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        q = probabilities(target, scores, ignore_index)
        attained = torch.where(q > 0, q * scores, 0.0).sum(-1)
        loss = self._value_of_target(q, scores) + self._max(scores, -1, None) - attained
        loss = loss - loss.detach().clamp(max=0)  # rounding may cause −1e-6; the gradient stays
        loss = torch.where(scores.isneginf().all(-1), torch.inf, loss)
        return zero_ignored(loss, target, ignore_index)


class _Parametric(Regularizer):
    """An Ω with a parameter, named as in its map: a number, or a tensor with one value per row."""

    _operator: MapOperator[Any]
    _conjugate: ConjugateOperator

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
        """The parameter; a tensor has as many dimensions as the scores."""
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
    """Tsallis negentropies: Ω(p) = (Σ p^α − 1)/(α(α−1))."""

    _operator, _conjugate = ENTMAX, ENTMAX_VALUE
    alpha: float | Tensor

    def _value(self, p: Tensor, dim: int) -> Tensor:
        return tsallis(p, self._parameter(p, dim), dim)

    def _row_loss(self, scores: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        return entmax_row_loss(scores, target, self._parameter(scores, -1), ignore_index)


@final
class Shannon(_Entropy):
    r"""The Shannon negentropy Ω(p) = γ Σ p log p; its map is softmax, its conjugate log-sum-exp.

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
    r"""The Gini negentropy Ω(p) = γ (‖p‖² − 1)/2; its map is sparsemax.

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
    r"""The Tsallis negentropy Ω(p) = γ (Σ p^α − 1)/(α(α−1)); its map is α-entmax.

    α is a number or a tensor, as in `fenchel.entmax`. α = 1 is `Shannon`, α = 2 is `Gini`.

    >>> import torch, fenchel
    >>> omega, x = fenchel.Tsallis(alpha=1.5), torch.tensor([1.0, 0.5, -1.0])
    >>> omega.map(x), omega.max(x), omega.value(omega.map(x))
    (tensor([0.6740, 0.3260, 0.0000]), tensor(1.1844), tensor(-0.3474))
    """

    def __init__(self, alpha: float | Tensor = 1.5, gamma: float = 1.0) -> None:
        super().__init__(alpha, gamma)


@final
class Norm(_Parametric):
    r"""The norm Ω(p) = γ ‖p‖_α; its map is normmax.

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
    r"""Half the squared norm Ω(q) = γ ½‖q‖_p²; its map is pnormmax.

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
    """½‖p‖² + λ penalty(p), with the strength λ."""

    strength: float | Tensor

    @abstractmethod
    def _penalty(self, p: Tensor, present: Tensor) -> Tensor:
        """The penalty along the last dimension, which is kept with size 1."""

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
    r"""The fused penalty Ω(p) = γ (½‖p‖² + λ Σ |p_{i+1} − p_i|) with strength λ; its map is fusedmax.

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
    r"""The OSCAR penalty Ω(p) = γ (½‖p‖² + λ Σ_{i<j} max(p_i, p_j)) with strength λ; its map is oscarmax.

    >>> import torch, fenchel
    >>> fenchel.Oscar(strength=0.1).max(torch.tensor([0.0, 0.7, -0.1, 0.8, 0.2]))
    tensor(0.1533)
    """

    _operator, _conjugate = OSCARMAX, OSCARMAX_VALUE

    def __init__(self, strength: float | Tensor = 0.01, gamma: float = 1.0) -> None:
        super().__init__(strength, gamma)

    def _penalty(self, p: Tensor, present: Tensor) -> Tensor:
        return maxima_of_pairs(p, present)
