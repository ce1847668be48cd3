"""The integral over chords: its kernels agree, and follow the mathematics at the extremes."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import fenchel
from fenchel.continuous.disk import _operator, disk_expectation
from fenchel.kernels.reference.paraboloid import paraboloid_moments
from fenchel.kernels.reference.paraboloid_window import window

IMPLEMENTATIONS = ("reference", "cpu")
ANGLES = 40


def turn(angle: Tensor) -> Tensor:
    rows = torch.stack((angle.cos(), -angle.sin(), angle.sin(), angle.cos()), -1)
    return rows.unflatten(-1, (2, 2))


def pairs(count: int) -> tuple[Tensor, Tensor]:
    """Gaussians of any widths and slants, inside the disk, on its edge, and up to 12 σ outside."""
    generator = torch.Generator().manual_seed(0)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    size = 10 ** (8 * uniform(count, 1) - 4)
    lengths = torch.cat((size, size * 10 ** (-5 * uniform(count, 1) ** 2)), -1)
    angle = 0.5 * math.pi * uniform(count) ** 2
    direction = torch.stack((angle.cos(), angle.sin()), -1)
    within = torch.where(uniform(count) < 0.5, 1.2 * uniform(count), 1.0)
    beyond = (8 * uniform(count) - 2) / (lengths * direction).norm(dim=-1)
    offset = lengths * direction * (within + beyond).abs().unsqueeze(-1)
    left, right = turn(6 * uniform(count)), turn(6 * uniform(count))
    linear = left @ torch.diag_embed(lengths) @ right
    return linear, (left @ offset.unsqueeze(-1)).squeeze(-1)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_40_angles_are_as_good_as_160(implementation):
    linear, offset = pairs(2000)
    exact, exact_slopes = paraboloid_moments(linear, offset, 160)
    with fenchel.implementation(implementation):
        value, slopes = _operator(linear, offset, ANGLES)
    visible = exact > 1e-38
    assert visible.sum() > 1800
    assert ((value - exact).abs() / exact)[visible].max() < 5e-8
    error = (slopes - exact_slopes).abs().amax(-1) / exact_slopes.abs().amax(-1)
    assert error[visible].max() < 5e-7


def test_the_kernel_for_the_cpu_follows_the_reference():
    linear, offset = pairs(2000)
    results = []
    for implementation in IMPLEMENTATIONS:
        with fenchel.implementation(implementation):
            results.append(_operator(linear, offset, 48))
    (reference, reference_slopes), (value, slopes) = results
    visible = reference > 1e-38
    assert ((value - reference).abs() / reference)[visible].max() < 1e-9
    error = (slopes - reference_slopes).abs().amax(-1) / reference_slopes.abs().amax(-1)
    assert error[visible].max() < 1e-8


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_wide_gaussian_is_constant_and_a_narrow_one_a_point(implementation):
    offset = torch.tensor([[0.3, -0.2]], dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)
    with fenchel.implementation(implementation):
        wide = disk_expectation(1e-7 * eye[None], offset, ANGLES)
        narrow_ = disk_expectation(1e5 * eye[None], 1e5 * offset, ANGLES)
    density = math.exp(-0.5 * (0.3**2 + 0.2**2)) / (2 * math.pi)
    assert abs(float(wide) / density - 1) < 1e-9
    there = 2 / math.pi * (1 - 0.3**2 - 0.2**2 - 2e-10)
    assert abs(float(narrow_) * 1e10 / there - 1) < 1e-9


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_turning_the_disk_or_the_gaussian_changes_nothing(implementation):
    linear, offset = pairs(200)
    angle = torch.full((200,), 0.7, dtype=torch.float64)
    with fenchel.implementation(implementation):
        value = disk_expectation(linear, offset, 48)
        turned = disk_expectation(linear @ turn(angle), offset, 48)
        moved = (turn(angle) @ offset.unsqueeze(-1)).squeeze(-1)
        both = disk_expectation(turn(angle) @ linear, moved, 48)
    torch.testing.assert_close(turned, value, rtol=1e-7, atol=1e-38)
    torch.testing.assert_close(both, value, rtol=1e-7, atol=1e-38)


def test_nothing_is_not_a_number_where_the_gaussian_is_too_far_to_see():
    linear = torch.eye(2, dtype=torch.float64).expand(3, 2, 2)
    offset = torch.tensor([[1e3, 0.0], [1e8, 1e8], [0.0, -45.0]], dtype=torch.float64)
    for implementation in IMPLEMENTATIONS:
        with fenchel.implementation(implementation):
            value, slopes = _operator(linear, offset, ANGLES)
        assert value.tolist() == [0.0] * 3
        assert (slopes == 0).all()


def test_an_operator_passes_opcheck():
    linear, offset = pairs(3)
    arguments = (linear.requires_grad_(), offset.requires_grad_(), ANGLES)
    torch.library.opcheck(_operator.for_number, arguments)


def test_explain_names_the_kernel():
    linear, offset = pairs(3)
    (choice,) = fenchel.explain(disk_expectation, linear, offset, ANGLES)
    assert choice.operator == "paraboloid"
    assert choice.implementation == "cpu"


@pytest.mark.parametrize(
    ("reach", "digits"), [(3, (1e-12, 1e-12, 1e-10, 1e-10)), (13, (1e-8, 1e-9, 1e-5, 1e-6))]
)
def test_both_forms_of_the_window_agree_where_they_meet(reach, digits):
    """Relative to the sizes T, Ty, Tb²y and Tb²y²; the closed form cancels as far out as 1e-38."""
    y = torch.linspace(-reach, reach, 261, dtype=torch.float64)
    b = 0.5 / y.abs().clamp(min=2)
    yes = torch.ones_like(y, dtype=torch.bool)
    expanded, closed = window(b, y, yes), window(b, y, ~yes)
    at_least_one = y.abs().clamp(min=1)
    shares = (1, at_least_one, b * b * at_least_one, b * b * at_least_one**2)
    for form, other, share, digit in zip(expanded, closed, shares, digits, strict=True):
        assert ((form - other).abs() <= digit * share * expanded.mass).all()


def test_the_window_is_its_integral():
    b, y = (
        torch.tensor([[0.01], [0.3], [2.0], [9.0]]).double(),
        torch.tensor([0.0, 1.5, 4.0]).double(),
    )
    z = torch.linspace(-1, 1, 200_001, dtype=torch.float64) * b[..., None]
    w = z - y[:, None]
    density = (b[..., None] ** 2 - z * z) * torch.exp(-0.5 * w * w) / math.sqrt(2 * math.pi)
    for form, factor in zip(window(b.expand(4, 3), y.expand(4, 3)), (1, w, z, w * z), strict=True):
        exact = torch.trapezoid(density * factor, z.expand_as(w), dim=-1)
        size = torch.trapezoid((density * factor).abs(), z.expand_as(w), dim=-1)
        assert ((form - exact).abs() <= 1e-8 * size + 1e-16).all()
