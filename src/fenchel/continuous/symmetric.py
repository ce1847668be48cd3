"""Base class of densities on an interval: a density on [−1, 1], shifted and scaled."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Size, Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import broadcast_all

from fenchel.checks import check_device
from fenchel.continuous.validation import (
    check_density_parameter,
    check_finite,
    check_points,
    check_positive,
    check_together,
    validates,
)


class Symmetric(Distribution):
    """A density on [loc − half_width, loc + half_width]; subclasses define it on [−1, 1]."""

    # torch declares a property and reads a class attribute.
    arg_constraints = {  # noqa: RUF012  # pyright: ignore[reportAssignmentType]
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    has_rsample = True

    def __init__(
        self, loc: float | Tensor, scale: float | Tensor, validate_args: bool | None = None
    ) -> None:
        loc, scale = check_density_parameter(loc, "loc"), check_density_parameter(scale, "scale")
        if isinstance(loc, Tensor) and isinstance(scale, Tensor):
            check_device(scale, loc, "scale", "loc")
            check_together(loc, scale, "loc and scale")
        self.loc, self.scale = broadcast_all(loc, scale)
        if validates(validate_args):
            check_finite(self.loc, "loc")
            check_positive(self.scale, "scale")
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    @abstractmethod
    def half_width(self) -> Tensor:
        """Half the width of the support."""

    @abstractmethod
    def _base_log_density(self, u: Tensor) -> Tensor: ...

    @abstractmethod
    def _base_cdf(self, u: Tensor) -> Tensor: ...

    @abstractmethod
    def _base_icdf(self, q: Tensor) -> Tensor: ...

    @property
    @abstractmethod
    def _base_variance(self) -> float: ...

    @property
    @abstractmethod
    def _base_entropy(self) -> float: ...

    @abstractmethod
    def _base_log_power_integral(self, exponent: float) -> float: ...

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.loc - self.half_width, self.loc + self.half_width)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._base_variance * self.half_width.square()

    def log_prob(self, value: Tensor) -> Tensor:
        """log p, −inf off the support."""
        u = self._place(value)
        inside = ~(u.abs() >= 1)  # NaN stays
        density = self._base_log_density(torch.where(inside, u, 0.0))
        return torch.where(inside, density - self.half_width.log(), -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return self._base_cdf(self._place(value).clamp(-1, 1))

    def icdf(self, value: Tensor) -> Tensor:
        value = check_points(value, "value", self.loc)
        check_together(value, self.loc, "value and the density")
        return self.loc + self.half_width * self._base_icdf(value)

    def entropy(self) -> Tensor:
        """Shannon's differential entropy −E[log p]."""
        return self.half_width.log() + self._base_entropy

    def log_power_integral(self, exponent: float) -> Tensor:
        """log ∫ p^exponent, for `tsallis_negentropy`."""
        return (1 - exponent) * self.half_width.log() + self._base_log_power_integral(exponent)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(Size(sample_shape))
        uniform = torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(uniform)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new: Any = self._get_checked_instance(type(self), _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        self._share(new)
        Distribution.__init__(new, Size(batch_shape), validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _place(self, value: Tensor) -> Tensor:
        """The value relative to the support, in [−1, 1] inside it."""
        value = check_points(value, "value", self.loc)
        check_together(value, self.loc, "value and the density")
        return (value - self.loc) / self.half_width

    def _share(self, other: Any) -> None:
        """Copy the attributes that are not parameters to another instance."""
