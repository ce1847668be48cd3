"""Value functions: a sequence or an image of vectors as a continuous function, by ridge regression."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from fenchel.checks import check_boolean, check_count, check_device, check_number
from fenchel.continuous.basis import GaussianBasis, check_basis
from fenchel.continuous.positions import positions_within, regular_positions
from fenchel.continuous.precision import wide, wide_dtype
from fenchel.continuous.triangles import cholesky, power_of_two
from fenchel.continuous.validation import check_items, check_nonempty, check_real
from fenchel.continuous.validity import valid_pieces, zero_elsewhere
from fenchel.errors import FenchelError
from fenchel.mechanisms.masks import check_broadcast, check_lengths, readable

Positions = Tensor | tuple[int, ...] | None

CACHED = 256  # regressors per basis; the least recently used is dropped


class _Kept(NamedTuple):
    """The cached regressors of a basis, valid as long as its tensors have this state."""

    state: tuple[Any, ...]
    tensors: tuple[Tensor, ...]
    regressors: OrderedDict[tuple, Tensor]


_regressors: WeakKeyDictionary[GaussianBasis, _Kept] = WeakKeyDictionary()


def ridge_values(
    values: Tensor,
    positions: Positions,
    basis: GaussianBasis,
    penalty: float = 0.1,
    *,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Fit a value function V(t) = Bᵀψ(t) to values at positions by ridge regression.

    The coefficients solve

        argmin_B Σ_ℓ |Bᵀψ(t_ℓ) − h_ℓ|² + λ‖B‖²  =  (FᵀF + λ1)⁻¹ Fᵀ H,

    where the rows of F are the basis at the positions and the rows of H are the values. The system
    is solved by a Cholesky factorisation in float64. For regular positions, the matrix in front of H
    depends only on their number; it is computed once per number and cached with the basis, unless
    the basis is learned.

    Cost: O(L N D) per sequence for the product with H, plus O(L N² + N³) if the matrix is not cached.

    Args:
        values: The values h, (…, L, D).
        positions: The positions: (L,) or (…, L) on the line, (L, 2) or (…, L, 2) in the plane, such as
            time stamps or centers of boxes; or the sizes of a regular grid, `(L,)` or
            `(rows, columns)`. None is the regular grid on the line.
        basis: The basis of N functions.
        penalty: λ > 0, to be compared with the diagonal of FᵀF, about L/(2√π σ) for Gaussians of standard
            deviation σ.
        lengths: The number of valid values per sequence, integers (…). Regular positions are those of
            the valid values.
        mask: Boolean (…, L); True marks valid values.

    Returns:
        The coefficients (…, N, D), differentiable in the values, the positions and the basis.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Eq. 16.

    >>> import torch
    >>> basis = GaussianBasis.grid(4, 0.2)
    >>> values = torch.tensor([[0.0], [1.0], [0.0]])
    >>> coefficients = ridge_values(values, None, basis, penalty=0.1)
    >>> basis(torch.tensor([1 / 6, 0.5, 5 / 6])) @ coefficients
    tensor([[0.0289],
            [0.9439],
            [0.0289]])
    """
    regressor = value_regressor(values, positions, basis, penalty, lengths=lengths, mask=mask)
    valid = valid_pieces(values.shape[-2], lengths, mask)
    return regressor @ zero_elsewhere(values, valid, vectors=True)


def value_regressor(
    values: Tensor,
    positions: Positions,
    basis: GaussianBasis,
    penalty: float,
    *,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The matrix (FᵀF + λ1)⁻¹ Fᵀ of `ridge_values`, (…, N, L), with zeros at padding.

    For a single density with expectations r (…, N), r times this matrix gives weights of the values in
    O(N L + L D), which is cheaper than O(N L D) for the coefficients.
    """
    check_number(penalty, name="penalty", above=0)
    check_pieces(values, positions, basis, lengths, mask)
    valid = valid_pieces(values.shape[-2], lengths, mask)
    regressor = None
    if not isinstance(positions, Tensor) and mask is None:
        regressor = _regular(values, positions, basis, penalty, lengths)
    if regressor is None:
        places = _valid_places(wide(_places(values, positions, lengths)), valid, basis)
        regressor = _regressor(basis, places, penalty, valid)
    return regressor.to(values.dtype)


def _regular(
    values: Tensor,
    sizes: tuple[int, ...] | None,
    basis: GaussianBasis,
    penalty: float,
    lengths: Tensor | None,
) -> Tensor | None:
    """The cached regressor (…, N, L), or None if it cannot be cached."""
    learned = basis.centers.requires_grad or basis.scales.requires_grad
    if learned or not _keepable(basis.centers) or not _keepable(basis.scales):
        return None
    length = values.shape[-2]
    if lengths is None:
        return _kept(basis, (length,) if sizes is None else sizes, penalty)
    if not readable(lengths):
        return None
    counts, which = torch.unique(lengths, return_inverse=True)
    each = [_kept(basis, (int(count),), penalty).to(values.dtype) for count in counts]
    padded = [torch.nn.functional.pad(one, (0, length - one.shape[-1])) for one in each]
    return torch.stack(padded)[which]


def _keepable(tensor: Tensor) -> bool:
    """Whether this is a plain tensor, not one traced by a transform or a compiler."""
    return (
        not torch.compiler.is_compiling()
        and not is_functorch_wrapped_tensor(tensor)
        and type(tensor) in (Tensor, torch.nn.Parameter)
        and not tensor.is_inference()  # inference tensors have no version counter
    )


def _kept(basis: GaussianBasis, sizes: tuple[int, ...], penalty: float) -> Tensor:
    kept = _kept_now(basis)
    regressor = kept.pop((sizes, penalty), None)
    if regressor is None:
        with torch.inference_mode(False), torch.no_grad():
            places = _grid(sizes, basis.centers.device)
            regressor = _regressor(basis, places, penalty, None)
    kept[sizes, penalty] = regressor  # most recently used
    while len(kept) > CACHED:
        kept.popitem(last=False)
    return regressor


def _kept_now(basis: GaussianBasis) -> OrderedDict[tuple, Tensor]:
    """The cache of the basis, cleared if its tensors were replaced or modified."""
    tensors = basis.centers, basis.scales
    state = tuple(
        (t.data_ptr(), t._version, t.shape, t.stride(), t.dtype, t.device) for t in tensors
    )
    known = _regressors.get(basis)
    if known is None or known.state != state:
        held = tuple(t.detach() for t in tensors)
        known = _regressors[basis] = _Kept(state, held, OrderedDict())
    return known.regressors


def _regressor(
    basis: GaussianBasis, places: Tensor, penalty: float, valid: Tensor | None
) -> Tensor:
    """(FᵀF + λ1)⁻¹ Fᵀ, (…, N, L). The columns of F are scaled to below 2, so that FᵀF is finite."""
    design = basis.at(places, wide(basis.centers), wide(basis.scales))
    if valid is not None:
        design = design * valid.unsqueeze(-1)
    peak = power_of_two(design.amax(-2).clamp(min=1))
    scaled = (design / peak.unsqueeze(-2)).mT
    factor = cholesky(scaled @ scaled.mT + torch.diag_embed(penalty / peak / peak))
    check_items(
        factor.isfinite().all((-2, -1)),
        "the ridge regression must not be singular (use a larger penalty or wider basis functions),"
        f" got penalty {penalty}",
    )
    return torch.cholesky_solve(scaled, factor) / peak.unsqueeze(-1)


def _places(values: Tensor, positions: Positions, lengths: Tensor | None) -> Tensor:
    if isinstance(positions, Tensor):
        return positions
    if lengths is None:
        sizes = tuple(values.shape[-2:-1]) if positions is None else positions
        return _grid(sizes, values.device)
    return positions_within(lengths, values.shape[-2], wide_dtype(values.device))


def _valid_places(places: Tensor, valid: Tensor | None, basis: GaussianBasis) -> Tensor:
    """The positions, zeroed for values that are not valid, and checked to be finite."""
    line = basis.centers.ndim == 1
    places = zero_elsewhere(places, valid, vectors=not line)
    finite = places.isfinite().all(-1) if line else places.isfinite().all((-2, -1))
    check_items(finite, "positions must be finite, got inf or nan")
    return places


def _grid(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    return regular_positions(*sizes, device=device, dtype=wide_dtype(device))


def check_pieces(
    values: Tensor,
    positions: Positions,
    basis: GaussianBasis,
    lengths: Tensor | None,
    mask: Tensor | None,
) -> None:
    """Check values, positions, lengths and mask."""
    check_real(values, "values")
    check_basis(basis)
    check_device(basis.centers, values, "basis", "the values")
    if values.ndim < 2:
        raise FenchelError(f"values must have shape (…, L, D), got {tuple(values.shape)}")
    *batch, length, _ = values.shape
    if length == 0:
        raise FenchelError(
            f"values must have at least one value per sequence, got shape {tuple(values.shape)}"
        )
    if isinstance(positions, Tensor):
        _check_positions(positions, tuple(batch), length, basis)
        check_device(positions, values, "positions", "the values")
    else:
        _check_sizes((length,) if positions is None else positions, length, basis)
    if lengths is not None:
        check_lengths(lengths, tuple(batch), length, values)
        check_nonempty(lengths > 0)
        if not isinstance(positions, Tensor) and basis.dims != 1:
            raise FenchelError("lengths cannot be used with a grid in the plane: pass a mask")
    if mask is not None:
        check_boolean(mask)
        check_broadcast(mask, (*batch, length), "mask")
        check_device(mask, values, "mask", "the values")
        check_nonempty(mask.any(-1))


def _check_positions(
    positions: Tensor, batch: tuple[int, ...], length: int, basis: GaussianBasis
) -> None:
    check_real(positions, "positions")
    tail = (length,) if basis.centers.ndim == 1 else (length, basis.dims)
    own = tuple(positions.shape)
    if own != tail and own != batch + tail:
        raise FenchelError(f"positions must have shape {tail} or {batch + tail}, got {own}")


def _check_sizes(sizes: tuple[int, ...], length: int, basis: GaussianBasis) -> None:
    if not isinstance(sizes, tuple):
        raise FenchelError(f"positions must be a tensor or a tuple of sizes, got {sizes!r}")
    if len(sizes) != basis.dims or (len(sizes) == 2) != (basis.centers.ndim == 2):
        raise FenchelError(
            f"positions must have the {basis.dims} dimensions of the basis, got a grid of {sizes}"
        )
    pieces = 1
    for size in sizes:
        pieces *= check_count(size, "every size of a grid")
    if pieces != length:
        raise FenchelError(f"a grid of {sizes} must have {pieces} values, got {length}")
