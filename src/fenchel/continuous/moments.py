"""Densities from discrete attention: its mean and variance, or a mixture fitted to it."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import BELOW_ZERO, check_count, check_device, check_number
from fenchel.continuous.mixture import Mixture
from fenchel.continuous.triangles import cholesky, log_diagonal, solve
from fenchel.continuous.validation import check_real, check_together
from fenchel.errors import FenchelError
from fenchel.mechanisms.masks import check_broadcast

STEPS = 10


def attention_moments(
    weights: Tensor, positions: Tensor, floor: float | Tensor = 0.0, *, dims: int = 1
) -> tuple[Tensor, Tensor]:
    r"""The mean and variance of the positions under attention weights.

    For weights p at positions t,

        μ = Σ_ℓ p_ℓ t_ℓ,    Σ = Σ_ℓ p_ℓ (t_ℓ − μ)(t_ℓ − μ)ᵀ + floor · 1.

    Attention to a single piece has variance zero without `floor`. A natural choice is 1/(12 L²), the
    variance of a piece of length 1/L.

    Args:
        weights: The weights p, (…, L), which sum to one.
        positions: (…, L) on the line, (…, L, D) for D = `dims` > 1; broadcast against the weights.
        floor: Added to every variance: a number, or one value per batch item.
        dims: The number of dimensions D.

    Returns:
        μ (…) and σ² (…), or μ (…, D) and Σ (…, D, D).

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §4.

    >>> import torch
    >>> attention_moments(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.0, 0.5, 1.0]))
    (tensor(0.2500), tensor(0.0625))
    """
    places = _coordinates(weights, positions, dims)
    _check_floor(floor, weights, places)
    loc, variance = _moments(weights, places, floor)
    return (loc.squeeze(-1), variance.squeeze((-2, -1))) if dims == 1 else (loc, variance)


def fit_mixture(
    weights: Tensor,
    positions: Tensor,
    modes: int,
    floor: float | Tensor = 0.0,
    *,
    dims: int = 1,
    steps: int = STEPS,
) -> Mixture:
    r"""Fit a mixture of K Gaussians to attention weights by expectation maximisation.

    The mixture maximises

        Σ_ℓ p_ℓ log Σ_k π_k N(t_ℓ; μ_k, Σ_k).

    The algorithm starts from K parts of equal mass along the axis of largest variance and runs a fixed
    number of steps, through which it is differentiable. One mode gives `attention_moments`.

    Args:
        weights, positions, floor, dims: As for `attention_moments`; `floor` must be positive for
            several modes.
        modes: The number of Gaussians K.
        steps: The number of steps.

    Cost: O(K L) per step and item.

    >>> import torch
    >>> weights, positions = torch.tensor([0.4, 0.1, 0.0, 0.5]), torch.tensor([0.0, 0.1, 0.5, 1.0])
    >>> fit_mixture(weights, positions, modes=2, floor=1e-3).loc
    tensor([0.0200, 1.0000])
    """
    check_count(modes, "modes")
    check_count(steps, "steps", least=0)
    places = _coordinates(weights, positions, dims)
    _check_floor(floor, weights, places)
    if places.ndim > weights.ndim + 1:
        most = weights.ndim + (dims > 1)
        raise FenchelError(f"positions must have at most {most} dimensions, got {positions.ndim}")
    if modes > 1 and not isinstance(floor, Tensor) and not floor > 0:
        raise FenchelError(f"floor must be above 0 for more than one mode, got {floor}")
    places = places.expand(*weights.shape, dims)
    if modes == 1:
        loc, variance = _moments(weights, places, floor)
        mixture = Mixture(
            torch.ones_like(weights[..., :1]), loc.unsqueeze(-2), variance.unsqueeze(-3)
        )
    else:
        mixture = _maximise(weights, places, _split(weights, places, modes), floor)
        for _ in range(steps):
            mixture = _maximise(weights, places, _responsibilities(places, mixture), floor)
    if dims > 1:
        return mixture
    return Mixture(mixture.mixing, mixture.loc.squeeze(-1), mixture.variance.squeeze((-2, -1)))


def _moments(weights: Tensor, places: Tensor, floor: float | Tensor) -> tuple[Tensor, Tensor]:
    loc = (weights.unsqueeze(-1) * places).sum(-2)
    off = places - loc.unsqueeze(-2)
    # Not a matrix product, which a GPU may compute in TF32 with ten bits.
    variance = ((weights.unsqueeze(-1) * off).unsqueeze(-1) * off.unsqueeze(-2)).sum(-3)
    floor = torch.as_tensor(floor, dtype=variance.dtype, device=variance.device)
    eye = torch.eye(places.shape[-1], dtype=variance.dtype, device=variance.device)
    return loc, variance + floor[..., None, None] * eye


def _split(weights: Tensor, places: Tensor, modes: int) -> Tensor:
    """(…, K, L): the share of each position in K parts of equal mass along the longest axis."""
    _, variance = _moments(weights.detach(), places.detach(), 0.0)
    along = places.detach()[..., 0]
    if places.shape[-1] > 1:
        along = (places.detach() @ torch.linalg.eigh(variance)[1][..., -1:]).squeeze(-1)
    order = along.argsort(-1)
    mass = weights.gather(-1, order)
    above = mass.cumsum(-1)
    parts = torch.arange(modes, dtype=weights.dtype, device=weights.device).unsqueeze(-1) / modes
    low = torch.maximum((above - mass).unsqueeze(-2), parts)
    high = torch.minimum(above.unsqueeze(-2), parts + 1 / modes)
    tiny = torch.finfo(weights.dtype).tiny
    share = (high - low).clamp(min=0) / mass.unsqueeze(-2).clamp(min=tiny)
    back = order.argsort(-1).unsqueeze(-2).expand_as(share)
    return share.gather(-1, back)


def _maximise(weights: Tensor, places: Tensor, shares: Tensor, floor: float | Tensor) -> Mixture:
    joint = weights.unsqueeze(-2) * shares
    mixing = joint.sum(-1)
    within = joint / mixing.unsqueeze(-1).clamp(min=torch.finfo(weights.dtype).tiny)
    floor = torch.as_tensor(floor, dtype=weights.dtype, device=weights.device).unsqueeze(-1)
    return Mixture(mixing, *_moments(within, places.unsqueeze(-3), floor))


def _responsibilities(places: Tensor, mixture: Mixture) -> Tensor:
    """(…, K, L), summing to one over the modes."""
    tril = cholesky(mixture.variance).unsqueeze(-3)
    z = solve(tril, places.unsqueeze(-3) - mixture.loc.unsqueeze(-2))
    tiny = torch.finfo(places.dtype).tiny
    log_mixing = mixture.mixing.clamp(min=tiny).log().unsqueeze(-1)
    return torch.softmax(log_mixing - 0.5 * z.square().sum(-1) - log_diagonal(tril), -2)


def _coordinates(weights: Tensor, positions: Tensor, dims: int) -> Tensor:
    """Positions as (…, L, D)."""
    check_real(weights, "weights")
    check_real(positions, "positions")
    check_count(dims, "dims")
    check_device(positions, weights, "positions", "the weights")
    if weights.ndim == 0:
        raise FenchelError("weights must have shape (…, L), got a scalar")
    places = positions.unsqueeze(-1) if dims == 1 else positions
    if places.shape[-2:] != (weights.shape[-1], dims):
        tail = f"{weights.shape[-1]}" if dims == 1 else f"{weights.shape[-1]}, {dims}"
        raise FenchelError(f"positions must have shape (…, {tail}), got {tuple(positions.shape)}")
    check_together(places[..., 0], weights, "positions and weights")
    return places


def _check_floor(floor: float | Tensor, weights: Tensor, places: Tensor) -> None:
    """A number at least 0, or one value per batch item."""
    if not isinstance(floor, Tensor):
        check_number(floor, name="floor", above=BELOW_ZERO)
        return
    check_real(floor, "floor")
    if floor.ndim:
        check_device(floor, weights, "floor", "the weights")
    batch = torch.broadcast_shapes(weights.shape[:-1], places.shape[:-2])
    check_broadcast(floor, tuple(batch), "floor")
