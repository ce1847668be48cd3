"""Whatever is given for an argument works or breaks a rule: no other error is seen."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch.distributions import Gamma, MixtureSameFamily

import fenchel
from fenchel.continuous import (
    BetaGaussian,
    GaussianBasis,
    LocationScale,
    Mixture,
    Triangular,
    TruncatedParabola,
    TruncatedParaboloid,
    attention_moments,
    box_positions,
    covariance,
    deformed_exp,
    deformed_log,
    entmax,
    escort,
    fit_mixture,
    negentropy,
    normalizer,
    prediction,
    regular_positions,
    ridge_values,
    tsallis_negentropy,
)
from fenchel.nn import AdditiveAttention, ContinuousAttention1d, ContinuousAttention2d

LINE, PLANE = GaussianBasis.grid(4, 0.2), GaussianBasis.grid((2, 2), 0.2)
EYE, THIRDS = torch.eye(2), torch.full((3,), 1 / 3)
ATTENTION = AdditiveAttention(4, 4, 4)
MOMENTS = ContinuousAttention1d.combined(ATTENTION, LINE)
POOLED = ContinuousAttention1d.pooled(4, LINE)
REGIONS = ContinuousAttention2d.pooled(4, PLANE)
PLACED = ContinuousAttention2d.moments(ATTENTION, PLANE)
LAYOUT = {"lengths": None, "mask": None, "positions": None}
SEEN = {"query": torch.zeros(2, 4), "values": torch.randn(2, 3, 4), "keys": None, **LAYOUT}
FOUR = {**SEEN, "values": torch.randn(2, 4, 4), "positions": (2, 2)}
BUILT = {"basis": LINE, "alpha": 2.0, "penalty": 0.1}

WRONG = {
    "nothing": None,
    "text": "a",
    "a truth": True,
    "a list": [1.0, 2.0],
    "an array": np.ones(3),
    "an object": object(),
    "a whole number": 3,
    "a negative number": -1.0,
    "no number": float("nan"),
    "an infinite number": float("inf"),
    "a number of NumPy": np.float32(2.5),
    "a dictionary": {},
    "a size": (3,),
    "sizes": (2, 2),
    "broken sizes": (1.5, 2),
    "words": ("a", "b"),
    "a function": lambda x: x,
    "whole numbers": torch.ones(3, dtype=torch.long),
    "truths": torch.ones(3, dtype=torch.bool),
    "complex numbers": torch.ones(3, dtype=torch.complex64),
    "too many": torch.ones(7),
    "one number": torch.tensor(1.5),
    "no numbers": torch.zeros(0),
    "a matrix": torch.ones(3, 3),
    "another device": torch.ones(3, device="meta"),
    "double precision": torch.ones(3, dtype=torch.float64),
    "half precision": torch.ones(3, dtype=torch.float16),
    "a sparse tensor": torch.ones(3).to_sparse(),
    "a hole": torch.tensor([1.0, float("nan"), 1.0]),
}

MODES = {"mixing": THIRDS, "loc": torch.rand(3), "variance": torch.ones(3)}
MODES_IN_THE_PLANE = {"mixing": THIRDS, "loc": torch.rand(3, 2), "variance": EYE.expand(3, 2, 2)}


def expectation(basis, alpha, **parts):
    return Mixture(**parts).expectation(basis, alpha)


def distribution(alpha, **parts):
    return Mixture(**parts).distribution(alpha)


CALLS = {
    "entmax": (
        entmax,
        {
            "loc": torch.zeros(3),
            "variance": torch.ones(3),
            "basis": LINE,
            "alpha": 2.0,
            "angles": 40,
        },
    ),
    "entmax in the plane": (
        entmax,
        {"loc": torch.zeros(3, 2), "variance": EYE.expand(3, 2, 2), "basis": PLANE, "alpha": 2.0},
    ),
    "ridge_values": (
        ridge_values,
        {"values": torch.randn(2, 3, 4), "basis": LINE, "penalty": 0.1, **LAYOUT},
    ),
    "ridge_values in the plane": (
        ridge_values,
        {"values": torch.randn(2, 4, 4), "basis": PLANE, **LAYOUT, "positions": (2, 2)},
    ),
    "Triangular": (Triangular, {"loc": torch.zeros(3), "scale": torch.ones(3)}),
    "TruncatedParabola": (TruncatedParabola, {"loc": torch.zeros(3), "scale": torch.ones(3)}),
    "LocationScale": (
        LocationScale,
        {"loc": torch.zeros(3), "scale": torch.ones(3), "g": torch.cosh, "derivative": torch.sinh},
    ),
    "BetaGaussian": (
        BetaGaussian,
        {"loc": torch.zeros(3, 2), "covariance_matrix": EYE, "alpha": 1.5},
    ),
    "TruncatedParaboloid": (
        TruncatedParaboloid,
        {"loc": torch.zeros(3, 2), "covariance_matrix": EYE},
    ),
    "BetaGaussian.escort": (BetaGaussian(torch.zeros(2), EYE).escort, {"beta": 0.5}),
    "BetaGaussian.log_prob": (
        BetaGaussian(torch.zeros(3, 2), EYE).log_prob,
        {"value": torch.zeros(3, 2)},
    ),
    "log_prob": (Triangular(torch.zeros(3), 1.0).log_prob, {"value": torch.zeros(3)}),
    "cdf": (Triangular(torch.zeros(3), 1.0).cdf, {"value": torch.zeros(3)}),
    "icdf": (Triangular(torch.zeros(3), 1.0).icdf, {"value": torch.zeros(3)}),
    "GaussianBasis": (GaussianBasis, {"centers": torch.zeros(3), "scales": torch.ones(3)}),
    "GaussianBasis.grid": (
        GaussianBasis.grid,
        {"count": 3, "scales": 0.1, "low": 0.0, "high": 1.0},
    ),
    "a basis": (LINE, {"points": torch.zeros(3)}),
    "a basis in the plane": (PLANE, {"points": torch.zeros(3, 2)}),
    "attention_moments": (
        attention_moments,
        {"weights": THIRDS, "positions": torch.rand(3), "floor": 0.01, "dims": 1},
    ),
    "fit_mixture": (
        fit_mixture,
        {
            "weights": THIRDS,
            "positions": torch.rand(3),
            "modes": 2,
            "floor": 0.01,
            "dims": 1,
            "steps": 2,
        },
    ),
    "box_positions": (box_positions, {"boxes": torch.rand(3, 4), "size": (1.0, 1.0)}),
    "regular_positions": (lambda size: regular_positions(size), {"size": 3}),
    "covariance": (
        covariance,
        {
            "p": THIRDS,
            "weights": torch.ones(3),
            "phi": torch.eye(3),
            "psi": torch.eye(3),
            "beta": 0.5,
        },
    ),
    "escort": (escort, {"p": THIRDS, "weights": torch.ones(3), "beta": 0.5}),
    "negentropy": (negentropy, {"p": THIRDS, "weights": torch.ones(3), "alpha": 1.5}),
    "normalizer": (normalizer, {"scores": THIRDS, "weights": torch.ones(3), "alpha": 1.5}),
    "prediction": (prediction, {"scores": THIRDS, "weights": torch.ones(3), "alpha": 1.5}),
    "deformed_log": (deformed_log, {"u": torch.ones(3), "beta": 0.5}),
    "deformed_exp": (deformed_exp, {"u": torch.ones(3), "beta": 0.5}),
    "tsallis_negentropy": (tsallis_negentropy, {"density": Triangular(0.0, 1.0), "alpha": 1.0}),
    "Mixture.expectation": (expectation, {**MODES, "basis": LINE, "alpha": 2.0}),
    "Mixture.distribution": (distribution, {**MODES, "alpha": 1.0}),
    "Mixture.distribution in the plane": (distribution, {**MODES_IN_THE_PLANE, "alpha": 1.0}),
    "pooled": (ContinuousAttention1d.pooled, {"query_size": 4, "heads": 1, "modes": 1, **BUILT}),
    "moments": (ContinuousAttention1d.moments, {"attention": ATTENTION, "modes": 1, **BUILT}),
    "combined": (ContinuousAttention1d.combined, {"attention": ATTENTION, "modes": 1, **BUILT}),
    "ContinuousAttention1d": (
        ContinuousAttention1d,
        {"parameters_of": POOLED.parameters_of, "add_discrete": False, **BUILT},
    ),
    "a pooled layer": (POOLED, {**SEEN, "coefficients": None}),
    "a layer of moments": (MOMENTS, {**SEEN, "coefficients": None}),
    "a layer of moments, fitted": (MOMENTS, {**SEEN, "coefficients": MOMENTS.fit(SEEN["values"])}),
    "a pooled layer in the plane": (REGIONS, {**FOUR, "coefficients": None}),
    "a layer of moments in the plane": (PLACED, {**FOUR, "coefficients": None}),
    "fit": (POOLED.fit, {"values": torch.randn(2, 3, 4), **LAYOUT}),
}


@pytest.mark.parametrize("name", CALLS)
def test_whatever_is_given_works_or_breaks_a_rule(name):
    call, arguments = CALLS[name]
    call(**arguments)
    for argument in arguments:
        for kind, value in WRONG.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    call(**{**arguments, argument: value})
            except fenchel.FenchelError:
                continue
            except Exception as error:
                pytest.fail(f"{kind} for {argument} is a {type(error).__name__}: {error}")


def broken(message: str):
    return pytest.raises(fenchel.FenchelError, match=message)


@pytest.mark.parametrize("density", [Triangular, TruncatedParabola])
def test_parameters_of_a_density_are_numbers_or_real_tensors(density):
    with broken("scale must be a floating-point tensor, got torch.int64"):
        density(torch.zeros(3), torch.ones(3, dtype=torch.long))
    with broken(r"loc and scale must have shapes that broadcast, got \(3,\) and \(7,\)"):
        density(torch.zeros(3), torch.ones(7))
    with broken(r"scale must be on the device of loc \(cpu\), got meta"):
        density(torch.zeros(3), torch.ones(3, device="meta"))
    assert density(0, np.float32(1.0)).log_prob(0.0) == density(0.0, 1.0).log_prob(torch.zeros(()))


def test_a_gaussian_takes_the_wider_dtype_of_its_parameters():
    density = BetaGaussian(torch.zeros(2), EYE.double(), 1.5)
    assert density.rsample().dtype == density.log_prob(torch.zeros(2)).dtype == torch.float64
    with broken("loc and covariance_matrix must be torch.float32 or torch.float64, got"):
        BetaGaussian(torch.zeros(2).half(), EYE.half())


def test_the_shannon_negentropy_is_known_or_refused():
    mixture = Mixture(THIRDS, torch.rand(3), torch.ones(3)).distribution()
    assert isinstance(mixture, MixtureSameFamily)
    with broken("density must be one of fenchel.continuous, .* got MixtureSameFamily"):
        tsallis_negentropy(mixture, 1.0)
    torch.testing.assert_close(tsallis_negentropy(Gamma(2.0, 1.0), 1.0), -Gamma(2.0, 1.0).entropy())


def test_coefficients_are_those_of_the_values():
    with broken(r"coefficients must have shape \(2, 4, 4\), got \(2, 3, 4\)"):
        POOLED(**SEEN, coefficients=SEEN["values"])
    with broken("query must have size 4, got 5"):
        POOLED(**{**SEEN, "query": torch.zeros(2, 5)})


def test_modes_have_weights_and_places():
    parts = torch.rand(2), torch.ones(2)
    with broken("mixing must be at least 0 and finite, got other weights"):
        Mixture(torch.tensor([0.5, -0.5]), *parts).distribution()
    with broken(r"loc must have shape \(3,\), or \(3, D\) in D dimensions, got \(2,\)"):
        Mixture(THIRDS, *parts).expectation(LINE)
