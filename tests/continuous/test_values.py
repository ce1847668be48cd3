"""Value functions are ridge regressions, whatever the lengths, masks and positions."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from fenchel.continuous import GaussianBasis, box_positions, regular_positions, ridge_values
from fenchel.continuous import values as values_module

BASIS = GaussianBasis.grid(6, (0.1, 0.4), dtype=torch.float64)
LINE = GaussianBasis.grid(5, 0.2)
PLANE = GaussianBasis.grid((3, 3), 0.3, dtype=torch.float64)


def least_squares(values: Tensor, design: Tensor, penalty: float) -> Tensor:
    """argmin |F B − H|² + λ|B|², as an ordinary least-squares problem with more rows."""
    size = design.shape[-1]
    rows = torch.cat((design, penalty**0.5 * torch.eye(size, dtype=torch.float64)))
    right = torch.cat((values, torch.zeros(size, values.shape[-1], dtype=torch.float64)))
    return torch.linalg.lstsq(rows, right).solution


def test_regular_positions_are_the_middles_of_the_pieces():
    values = torch.randn(3, 9, 2, dtype=torch.float64)
    places = (torch.arange(9, dtype=torch.float64) + 0.5) / 9
    computed = ridge_values(values, None, BASIS, 0.1)
    for i in range(3):
        exact = least_squares(values[i], BASIS(places), 0.1)
        torch.testing.assert_close(computed[i], exact, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(ridge_values(values, (9,), BASIS, 0.1), computed)
    torch.testing.assert_close(ridge_values(values, places, BASIS, 0.1), computed)


def test_lengths_are_a_loop_over_the_sequences():
    values = torch.randn(4, 9, 2, dtype=torch.float64)
    values[0, 5:] = torch.nan  # padding may hold anything
    lengths = torch.tensor([5, 9, 1, 5])
    computed = ridge_values(values, None, BASIS, 0.1, lengths=lengths)
    for i, length in enumerate(lengths.tolist()):
        alone = ridge_values(values[i, :length], None, BASIS, 0.1)
        torch.testing.assert_close(computed[i], alone)


def test_a_mask_takes_values_out():
    values = torch.randn(4, 9, 2, dtype=torch.float64)
    mask = torch.rand(4, 9) < 0.6
    mask[:, 0] = True
    values[~mask] = torch.inf
    places = regular_positions(9, dtype=torch.float64)
    computed = ridge_values(values, None, BASIS, 0.1, mask=mask)
    for i in range(4):
        exact = least_squares(values[i][mask[i]], BASIS(places[mask[i]]), 0.1)
        torch.testing.assert_close(computed[i], exact, rtol=1e-9, atol=1e-10)
    shared = ridge_values(values, None, BASIS, 0.1, mask=mask & mask[:1])
    torch.testing.assert_close(shared[0], computed[0])


def test_time_stamps_may_be_irregular_and_differ_between_sequences():
    values = torch.randn(2, 5, 3, dtype=torch.float64)
    stamps = torch.rand(2, 5, dtype=torch.float64).sort(-1).values
    lengths = torch.tensor([5, 3])
    computed = ridge_values(values, stamps, BASIS, 0.01, lengths=lengths)
    for i, length in enumerate(lengths.tolist()):
        exact = least_squares(values[i, :length], BASIS(stamps[i, :length]), 0.01)
        torch.testing.assert_close(computed[i], exact, rtol=1e-8, atol=1e-9)


def test_positions_of_padding_may_hold_anything():
    values, places = torch.randn(2, 9, 2).double(), torch.rand(2, 9).double()
    lengths, mask = torch.tensor([4, 9]), torch.rand(2, 9) < 0.7
    mask[:, 0] = True
    invalid = ~(mask & (torch.arange(9) < lengths.unsqueeze(-1)))
    exact = ridge_values(values, places, BASIS, lengths=lengths, mask=mask)
    places, values = places.masked_fill(invalid, torch.nan), values.clone()
    values[invalid] = torch.inf
    torch.testing.assert_close(
        ridge_values(values, places, BASIS, lengths=lengths, mask=mask), exact
    )


def test_images_are_grids_and_boxes():
    values = torch.randn(2, 12, 3, dtype=torch.float64)
    grid = regular_positions(3, 4, dtype=torch.float64)
    computed = ridge_values(values, (3, 4), PLANE, 0.1)
    torch.testing.assert_close(computed, ridge_values(values, grid, PLANE, 0.1))
    torch.testing.assert_close(
        computed[0], least_squares(values[0], PLANE(grid), 0.1), rtol=1e-9, atol=1e-10
    )
    corners = torch.tensor([[0.0, 0.0, 10.0, 20.0], [10.0, 10.0, 30.0, 40.0]])
    boxes = box_positions(corners, size=(40, 80)).double()
    torch.testing.assert_close(boxes, torch.tensor([[0.125, 0.125], [0.5, 0.3125]]).double())
    computed = ridge_values(values[0, :2], boxes, PLANE, 0.1)
    torch.testing.assert_close(computed, least_squares(values[0, :2], PLANE(boxes), 0.1))


def test_regressions_are_kept_by_length_and_die_with_their_basis(monkeypatch):
    basis = GaussianBasis.grid(5, 0.2)
    solved, solve = [], values_module._regressor

    def counted(basis: GaussianBasis, places: Tensor, *rest) -> Tensor:
        solved.append(len(places))
        return solve(basis, places, *rest)

    monkeypatch.setattr(values_module, "_regressor", counted)
    for _ in range(3):
        ridge_values(torch.randn(2, 7, 3), None, basis, 0.1)
        ridge_values(torch.randn(2, 9, 3), None, basis, 0.1, lengths=torch.tensor([7, 9]))
    assert len(solved) == 2
    ridge_values(torch.randn(2, 7, 3), None, basis, 0.2)
    assert len(solved) == 3
    with torch.no_grad():
        basis.scales.mul_(2)
    changed = ridge_values(torch.ones(1, 7, 1), None, basis, 0.1)
    assert len(solved) == 4
    fresh = GaussianBasis(basis.centers.clone(), basis.scales.clone())
    torch.testing.assert_close(changed, ridge_values(torch.ones(1, 7, 1), None, fresh, 0.1))
    before = len(values_module._regressors)
    del basis, fresh
    gc.collect()
    assert len(values_module._regressors) < before


def test_a_basis_with_other_tensors_has_other_regressions():
    basis, values = GaussianBasis.grid(64, 0.2), torch.randn(1, 7, 2)
    for width in range(1, 9):
        basis.scales = torch.full((64,), 0.05 * width)  # where one of those before may have been
        fresh = GaussianBasis(basis.centers.clone(), basis.scales.clone())
        assert torch.equal(ridge_values(values, None, basis), ridge_values(values, None, fresh))


def test_a_basis_may_be_made_and_first_used_in_inference_mode():
    values = torch.randn(2, 7, 2, dtype=torch.float64)
    with torch.inference_mode():
        ridge_values(values, None, GaussianBasis.grid(5, 0.2))
        ridge_values(values, None, basis := GaussianBasis(LINE.centers, LINE.scales))
    ridge_values(values.requires_grad_(), None, basis).sum().backward()
    assert values.grad is not None


def test_a_basis_that_is_learned_gets_gradients_and_is_never_kept():
    centers = nn.Parameter(torch.tensor([0.2, 0.7], dtype=torch.float64))
    basis = GaussianBasis(centers, torch.tensor([0.2, 0.3], dtype=torch.float64))
    assert list(basis.parameters()) == [centers]
    ridge_values(torch.randn(1, 5, 2).double(), None, basis, 0.1).sum().backward()
    assert (centers.grad != 0).all()
    assert basis not in values_module._regressors


def test_values_and_positions_have_derivatives():
    values = torch.randn(2, 4, 2, dtype=torch.float64).requires_grad_()
    positions = torch.rand(2, 4, dtype=torch.float64).requires_grad_()
    basis = GaussianBasis.grid(3, 0.3, dtype=torch.float64)
    assert gradcheck(lambda v, t: ridge_values(v, t, basis, 0.1), (values, positions))
    assert gradcheck(lambda v: ridge_values(v, None, basis, 0.1), (values,))


def test_vmap_is_a_loop():
    values = torch.randn(3, 2, 5, 2, dtype=torch.float64)
    lengths = torch.tensor([[5, 2], [3, 4], [1, 5]])
    together = torch.func.vmap(lambda v: ridge_values(v, None, BASIS, 0.1))(values)
    torch.testing.assert_close(together, ridge_values(values, None, BASIS, 0.1))
    both = torch.func.vmap(lambda v, n: ridge_values(v, None, BASIS, 0.1, lengths=n))(
        values, lengths
    )
    torch.testing.assert_close(both, ridge_values(values, None, BASIS, 0.1, lengths=lengths))


@pytest.mark.parametrize("penalty", [1e-6, 1.0])
def test_float32_values_are_fitted_with_a_float64_factor(penalty):
    values = torch.randn(2, 40, 3)
    basis = GaussianBasis.grid(16, (0.1, 0.5))
    wide = GaussianBasis(basis.centers.double(), basis.scales.double())
    exact = ridge_values(values.double(), None, wide, penalty)
    computed = ridge_values(values, None, basis, penalty)
    assert computed.dtype == torch.float32
    places = regular_positions(40, dtype=torch.float64)
    torch.testing.assert_close(
        wide(places) @ computed.double(), wide(places) @ exact, rtol=1e-3, atol=2e-3
    )


@pytest.mark.parametrize("width", [1e-300, 1e-160, 1e-38])
def test_a_narrow_basis_goes_through_its_values(width):
    basis = GaussianBasis.grid(4, width, dtype=torch.float64)
    values = torch.randn(4, 2, dtype=torch.float64)
    coefficients = ridge_values(values, basis.centers.clone(), basis, 0.1)
    torch.testing.assert_close(basis(basis.centers) @ coefficients, values, rtol=1e-12, atol=0)


@pytest.mark.parametrize("variances", [(3e38, 1.0), (1e-40, 1.0), (1.0, 1e-40, 1e38)])
def test_every_covariance_of_single_precision_has_a_basis_function(variances):
    variances = torch.tensor(variances)
    centers, matrix = torch.zeros(1, len(variances)), torch.diag(variances)
    places = torch.diag(0.5 * variances.sqrt())
    expected = GaussianBasis(centers.double(), matrix.double()[None])(places.double())
    computed = GaussianBasis(centers, matrix[None])(places)
    torch.testing.assert_close(computed.double(), expected, rtol=1e-4, atol=0)


def test_a_basis_is_what_it_says():
    basis = GaussianBasis.grid((4, 3), (0.1, 0.2))
    assert len(basis) == 24
    assert basis.dims == 2
    assert repr(basis) == "GaussianBasis(functions=24, dims=2)"
    t = torch.rand(5, 2)
    for j in (0, 13):
        density = torch.distributions.MultivariateNormal(basis.centers[j], basis.scales[j])
        torch.testing.assert_close(basis(t)[:, j], density.log_prob(t).exp())
    line = GaussianBasis.grid(3, 0.2)
    density = torch.distributions.Normal(line.centers, line.scales)
    torch.testing.assert_close(line(t), density.log_prob(t.unsqueeze(-1)).exp())
    assert set(line.double().state_dict()) == {"centers", "scales"}
    assert line.centers.dtype == torch.float64
