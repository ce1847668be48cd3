"""Continuous attention: densities, bases, expectations, value functions."""

from fenchel.continuous.basis import GaussianBasis
from fenchel.continuous.beta_gaussian import BetaGaussian, TruncatedParaboloid
from fenchel.continuous.deformed import deformed_exp, deformed_log
from fenchel.continuous.expectation import entmax
from fenchel.continuous.location_scale import LocationScale
from fenchel.continuous.measure import covariance, escort, negentropy, normalizer, prediction
from fenchel.continuous.mixture import Mixture
from fenchel.continuous.moments import attention_moments, fit_mixture
from fenchel.continuous.positions import box_positions, regular_positions
from fenchel.continuous.triangular import Triangular
from fenchel.continuous.truncated_parabola import TruncatedParabola
from fenchel.continuous.tsallis import tsallis_negentropy
from fenchel.continuous.values import ridge_values

__all__ = [
    "BetaGaussian",
    "GaussianBasis",
    "LocationScale",
    "Mixture",
    "Triangular",
    "TruncatedParabola",
    "TruncatedParaboloid",
    "attention_moments",
    "box_positions",
    "covariance",
    "deformed_exp",
    "deformed_log",
    "entmax",
    "escort",
    "fit_mixture",
    "negentropy",
    "normalizer",
    "prediction",
    "regular_positions",
    "ridge_values",
    "tsallis_negentropy",
]
