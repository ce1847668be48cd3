"""Invalid arguments raise `FenchelError`, which names the batch item."""

from __future__ import annotations

import re

import pytest
import torch
from torch.distributions import Beta

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
    deformed_exp,
    entmax,
    fit_mixture,
    normalizer,
    prediction,
    regular_positions,
    ridge_values,
    tsallis_negentropy,
)
from fenchel.nn import AdditiveAttention, ContinuousAttention1d, ContinuousAttention2d

LINE, PLANE = GaussianBasis.grid(4, 0.2), GaussianBasis.grid((2, 2), 0.2)
SPACE = GaussianBasis(torch.zeros(1, 3), torch.eye(3)[None])
EYE = torch.eye(2)
BAD = torch.stack((EYE, EYE, torch.tensor([[1.0, 2.0], [2.0, 1.0]])))
VALUES = torch.randn(2, 3, 4)


def broken(message: str):
    return pytest.raises(fenchel.FenchelError, match=f"^{re.escape(message)}")


ENTMAX = {
    "variance must be positive and finite, got -1.0 at batch item 1": (
        torch.zeros(3), torch.tensor([1.0, -1.0, 1.0]), LINE,
    ),
    "variance must be positive and finite, got 0.0 at batch item (1, 0)": (
        torch.zeros(2, 2), torch.tensor([[1.0, 1.0], [0.0, 1.0]]), LINE,
    ),
    "variance must be positive definite,"
    " got [[1.0, 2.0], [2.0, 1.0]] at batch item 2": (torch.zeros(3, 2), BAD, PLANE),
    "variance must be symmetric,"
    " got [[1.0, 0.5], [0.0, 1.0]] at batch item 0": (
        torch.zeros(1, 2), torch.tensor([[[1.0, 0.5], [0.0, 1.0]]]), PLANE,
    ),
    "loc must be finite, got nan at batch item 1": (
        torch.tensor([0.0, torch.nan]), torch.ones(2), LINE,
    ),
    "variance must have the shape of loc, (3,), got (2,)": (
        torch.zeros(3), torch.ones(2), LINE,
    ),
    "loc must have shape (…, 2) as the basis, got (3, 3)": (
        torch.zeros(3, 3), torch.eye(3).expand(3, 3, 3), PLANE,
    ),
    "variance must have shape (3, 2, 2) for loc of shape (3, 2),"
    " got (3, 2)": (torch.zeros(3, 2), torch.ones(3, 2), PLANE),
    "loc must be a floating-point tensor, got torch.int64": (
        torch.zeros(3, dtype=torch.long), torch.ones(3), LINE,
    ),
    "variance must be a floating-point tensor, got float": (
        torch.zeros(3), 1.0, LINE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", ENTMAX)
def test_locations_and_variances_are_checked_item_by_item(message):
    loc, variance, basis = ENTMAX[message]
    with broken(message):
        entmax(loc, variance, basis)


@pytest.mark.parametrize(
    ("basis", "alpha", "message"),
    [
        (LINE, 2.5, "alpha must be in [1, 2] on the line, got 2.5"),
        (LINE, 0.9, "alpha must be in [1, 2] on the line, got 0.9"),
        (PLANE, 1.5, "alpha must be 1 or 2 in the plane, got 1.5"),
        (SPACE, 2.0, "alpha must be 1 in 3 dimensions, got 2.0"),
        (LINE, "2", "alpha must be a number, got '2'"),
        (LINE, True, "alpha must be a number, got True"),
    ],
)
def test_alpha_has_its_range_in_every_dimension(basis, alpha, message):
    dims = basis.dims
    loc = torch.zeros(1) if dims == 1 else torch.zeros(1, dims)
    variance = torch.ones(1) if dims == 1 else torch.eye(dims)[None]
    with broken(message):
        entmax(loc, variance, basis, alpha)


def test_angles_are_at_least_two():
    for angles in (1, 40.0):
        with broken(f"angles must be a whole number of at least 2, got {angles}"):
            entmax(torch.zeros(2), EYE, PLANE, angles=angles)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (torch.zeros(3), torch.ones(2)),
            "scales must be standard deviations of shape (3,), got shape (2,)",
        ),
        (
            (torch.zeros(3, 2), torch.ones(3)),
            "scales must be covariance matrices of shape (3, 2, 2), got shape (3,)",
        ),
        (
            (torch.zeros(0), torch.ones(0)),
            "centers must have shape (N,) or (N, D), N ≥ 1, got (0,)",
        ),
        ((torch.zeros(2), torch.tensor([1.0, 0.0])), "scales must be positive and finite, got 0.0"),
        ((torch.zeros(3, 2), BAD), "scales must be positive definite, got [["),
        (
            ([0.0], [1.0]),
            "centers must be a floating-point tensor, got list",
        ),
    ],
)
def test_a_basis_has_centers_and_scales(arguments, message):
    with broken(message):
        GaussianBasis(*arguments)


def test_a_grid_has_functions_and_points_have_coordinates():
    count = "count must be a whole number of at least 1, got "
    for wrong in (0, 2.5, True, "4"):
        with broken(count + repr(wrong)):
            GaussianBasis.grid(wrong, 0.1)
    with broken("a basis must have at least one center and one scale, got 4 and ()"):
        GaussianBasis.grid(4, ())
    with broken(count + "0"):
        GaussianBasis.grid(0, 0.1)
    with broken("points must have shape (…, 2), got (3,)"):
        PLANE(torch.zeros(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ridge_values(torch.zeros(2, 0, 4), None, LINE),
            "values must have at least one value per sequence, got shape (2, 0, 4)",
        ),
        (
            lambda: ridge_values(VALUES, None, LINE, lengths=torch.tensor([2, 0])),
            "a sequence must have at least one valid value, got none at batch item 1",
        ),
        (
            lambda: ridge_values(VALUES, None, LINE, mask=torch.tensor([[False] * 3, [True] * 3])),
            "a sequence must have at least one valid value, got none at batch item 0",
        ),
        (
            lambda: ridge_values(VALUES, None, LINE, lengths=torch.tensor([2, 4])),
            "lengths must be between 0 and 3, got [2, 4]",
        ),
        (
            lambda: ridge_values(VALUES, None, PLANE),
            "positions must have the 2 dimensions of the basis, got a grid of (3,)",
        ),
        (
            lambda: ridge_values(VALUES, (2, 2), PLANE),
            "a grid of (2, 2) must have 4 values, got 3",
        ),
        (
            lambda: ridge_values(VALUES, torch.zeros(4), LINE),
            "positions must have shape (3,) or (2, 3), got (4,)",
        ),
        (
            lambda: ridge_values(VALUES, None, LINE, penalty=0.0),
            "penalty must be above 0 and finite, got 0.0",
        ),
        (
            lambda: ridge_values(VALUES, None, LINE, mask=torch.ones(2, 3)),
            "mask must be a boolean tensor, got torch.float32",
        ),
        (
            lambda: ridge_values(VALUES, None, LINE, mask=torch.ones(2, 4, dtype=torch.bool)),
            "mask must have a shape that broadcasts to (2, 3), got (2, 4)",
        ),
        (
            lambda: ridge_values(VALUES[:, :1], (1, 1), PLANE, lengths=torch.tensor([1, 1])),
            "lengths cannot be used with a grid in the plane: pass a mask",
        ),
        (
            lambda: ridge_values(torch.zeros(3), None, LINE),
            "values must have shape (…, L, D), got (3,)",
        ),
        (
            lambda: ridge_values(
                VALUES, torch.tensor([[0.1, 0.2, 0.3], [0.1, torch.nan, 0]]), LINE
            ),
            "positions must be finite, got inf or nan at batch item 1",
        ),
        (
            lambda: ridge_values(VALUES, 3, LINE),
            "positions must be a tensor or a tuple of sizes, got 3",
        ),
        (
            lambda: ridge_values(VALUES, None, None),
            "basis must be a fenchel.continuous.GaussianBasis, got NoneType",
        ),
        (lambda: regular_positions(), "sizes must be a length, or rows and columns, got ()"),
        (lambda: regular_positions(0), "every size must be a whole number of at least 1, got 0"),
        (
            lambda: regular_positions(2.5),
            "every size must be a whole number of at least 1, got 2.5",
        ),
        (lambda: box_positions(torch.zeros(3)), "boxes must have shape (…, 4), got (3,)"),
        (
            lambda: attention_moments(torch.ones(3) / 3, torch.zeros(4)),
            "positions must have shape (…, 3), got (4,)",
        ),
        (
            lambda: fit_mixture(torch.ones(3) / 3, torch.zeros(3), 0),
            "modes must be a whole number of at least 1, got 0",
        ),
    ],
)
def test_values_have_places(call, message):
    with broken(message):
        call()


@pytest.mark.parametrize("family", [TruncatedParabola, Triangular])
def test_densities_on_the_line_have_positive_scales(family):
    with broken("scale must be positive and finite, got -1.0 at batch item 1"):
        family(torch.zeros(2), torch.tensor([1.0, -1.0]))
    with broken("scale must be positive and finite, got 0.0"):
        family(0.0, 0.0)


def test_densities_in_space_have_positive_definite_matrices():
    message = "covariance_matrix must be positive definite, got"
    for density in (TruncatedParaboloid, BetaGaussian):
        with pytest.raises(fenchel.FenchelError, match=rf"^{message}.* at batch item 2$"):
            density(torch.zeros(3, 2), BAD)
    with broken("alpha must be at least 1, got a smaller value at batch item 1"):
        BetaGaussian(torch.zeros(2, 2), EYE, torch.tensor([1.5, 0.5]))
    with broken("covariance_matrix must have shape (2, 2) for loc of shape (2,), got (3, 3)"):
        BetaGaussian(torch.zeros(2), torch.eye(3))
    with broken("loc and covariance_matrix must have batch shapes that broadcast, got"):
        BetaGaussian(torch.zeros(3, 2), EYE.expand(4, 2, 2))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
@pytest.mark.parametrize("entries", [((0, 0),), ((0, 1), (1, 0))], ids=["diagonal", "corner"])
def test_matrices_are_finite(wrong, entries):
    matrix = torch.eye(2)
    for entry in entries:
        matrix[entry] = wrong
    finite = "must be finite, got"
    for density in (TruncatedParaboloid, BetaGaussian):
        with broken(f"covariance_matrix {finite} {wrong}"):
            density(torch.zeros(2), matrix)
    with broken(f"scales {finite} {wrong} at batch item (0, "):
        GaussianBasis(torch.zeros(1, 2), matrix[None])
    with broken(f"variance {finite} {wrong}"):
        entmax(torch.zeros(2), matrix, PLANE)
    with broken(f"variance {finite} {wrong} at batch item (0, "):
        Mixture(torch.ones(1), torch.zeros(1, 2), matrix[None]).distribution(1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_regression_that_rounding_makes_singular_asks_for_a_penalty(dtype):
    basis = GaussianBasis(torch.zeros(4, dtype=dtype), torch.ones(4, dtype=dtype))
    message = (
        "the ridge regression must not be singular (use a larger penalty or wider basis functions),"
        " got penalty 1e-20"
    )
    for positions in (None, torch.rand(2, 3)):
        with broken(message):
            ridge_values(VALUES.to(dtype), positions, basis, penalty=1e-20)


def test_a_location_scale_family_needs_a_support():
    with broken("g must satisfy a g′(a) − g(a) + g(0) = ½ for some a > 0, got"):
        LocationScale(0.0, 1.0, lambda s: 2 * s).log_prob(torch.tensor(0.0))


def test_other_functions_state_their_rules():
    with broken("density must be one of fenchel.continuous, or a Normal"):
        tsallis_negentropy(Beta(1.0, 1.0), 2.0)
    with broken("u must be a floating-point tensor, got int"):
        deformed_exp(1)
    with broken("alpha must be a number above 0 and at most 2, got 3"):
        normalizer(torch.zeros(2), torch.ones(2), 3)
    with broken("weights must have a shape that broadcasts with (2,), got (3,)"):
        normalizer(torch.zeros(2), torch.ones(3))
    with broken("the function must have shape (…, n), n ≥ 1, got (0,)"):
        normalizer(torch.zeros(0), torch.ones(0))
    with broken("alpha must be a number above 0 and at most 2, got tensor(1.5000)"):
        normalizer(torch.zeros(2), torch.ones(2), torch.tensor(1.5))
    with broken("weights must be a torch.Tensor, got list"):
        normalizer(torch.zeros(2), [1.0, 1.0])
    with broken("weights must be at least 0, got a negative weight at batch item 1"):
        normalizer(torch.zeros(2), torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
    with broken("at least one weight must be positive, got none"):
        prediction(torch.zeros(2), torch.zeros(2))
    with broken("floor must be above 0 for more than one mode, got 0.0"):
        fit_mixture(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), modes=2)
    with broken("floor must be at least 0 and finite, got -1"):
        attention_moments(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), floor=-1)


def test_layers_state_their_rules():
    with broken("basis must have 2 dimensions, got 1"):
        ContinuousAttention2d.pooled(4, LINE)
    with broken("heads must be a whole number of at least 1, got 0"):
        ContinuousAttention1d.pooled(4, LINE, heads=0)
    layer = ContinuousAttention1d.moments(AdditiveAttention(4, 4, 4), LINE)
    with broken("query must have shape (B, size) or (B, T, size), got (4,)"):
        layer(torch.zeros(4), VALUES)
    with broken("values must have shape (3, L, E), got (2, 3, 4)"):
        layer(torch.zeros(3, 4), VALUES)
    with broken("keys must have shape (2, 3, …), got (2, 5, 4)"):
        layer(torch.zeros(2, 4), VALUES, keys=torch.zeros(2, 5, 4))
    with broken("mask must be a boolean tensor, got torch.float32"):
        layer(torch.zeros(2, 4), VALUES, mask=torch.ones(2, 3))
    two = ContinuousAttention1d.pooled(4, LINE, heads=3)
    with broken("the size of the values must be divisible by 3 heads, got 4"):
        two(torch.zeros(2, 4), VALUES)
    with broken("a sequence must have at least one valid value, got none at batch item 1"):
        two = ContinuousAttention1d.pooled(4, LINE)
        two(torch.zeros(2, 4), VALUES, torch.tensor([3, 0]))
    with broken("a sequence must have at least one valid value, got none at"):
        fitted = layer.fit(VALUES)
        layer(torch.zeros(2, 4), VALUES, torch.tensor([3, 0]), coefficients=fitted)
