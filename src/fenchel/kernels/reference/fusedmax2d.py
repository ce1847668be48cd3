"""fusedmax2d by its definition, and its derivatives: fusedmax on the grid of the last two dimensions.

    argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ (Σ |p_{i,j+1} − p_{i,j}| + Σ |p_{i+1,j} − p_{i,j}|)

is the projection onto the simplex of the prox of 2-D total variation. Images are rows of all their
entries, with a width. −inf (and so a mask) removes an entry: in every row and every column of the grid,
the others become neighbours. The groups (int32) are regions of equal value, numbered 1, 2, … from the
lowest of the support; 0 is off the support, and −1 marks removed entries.

The prox is z = x − r − c, with r the dual image of the rows and c that of the columns. For a given c
the optimal r is exact, x − c − prox_rows(x − c), and for a given r the optimal c. Alternating them with
Nesterov's momentum, which restarts whenever it points the wrong way, finds the groups in a few dozen
rounds. After a step of the columns only the rows contribute to the duality gap, which bounds ½‖z −
z*‖²: Σ λ|d| − u d over their differences d, with dual variables u. None of its terms is negative.

Reference: Chambolle & Pock (2015), *A remark on accelerated block coordinate descent for computing the
proximity operators of a sum of convex functions*.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fenchel.errors import FenchelError
from fenchel.kernels.reference.entmax import entmax, subtract_max, widen
from fenchel.kernels.reference.fusedmax import neighbour_before, prox_total_variation
from fenchel.kernels.reference.groups import centre, group_means, grouped_backward

MAX_ROUNDS = 10_000
GAP_ROUNDING = 1e-15  # rounding error of the duality gap per entry


def fusedmax2d(
    scores: Tensor, strength: float | Tensor, width: int, prox: Prox = prox_total_variation
) -> tuple[Tensor, Tensor]:
    """(p, groups) of rows (batch, height · width)."""
    shifted, _ = subtract_max(widen(scores))
    present = ~shifted.isneginf()
    strength = torch.as_tensor(strength, dtype=shifted.dtype, device=shifted.device).reshape(-1, 1)
    # Entries that far below the largest are never in the support, so their distance does not matter.
    near = torch.where(present, torch.maximum(shifted, -(8 * strength + 2)), 0.0)
    grid, there = near.unflatten(-1, (-1, width)), present.unflatten(-1, (-1, width))
    rows = Chains(there, strength.unsqueeze(-1), prox)
    columns = Chains(there.mT, strength.unsqueeze(-1), prox)
    z, along, down = prox_grid(grid, rows, columns)
    z = z.flatten(-2)
    groups = _number(z, _regions(along, down, there))
    z = group_means(z, torch.ones_like(z), groups, -1)
    p = entmax(torch.where(present, z, -torch.inf), 2.0)
    lowest = torch.where(p != 0, groups, groups.shape[-1]).amin(-1, keepdim=True)
    groups = torch.where(p != 0, groups - lowest + 1, 0)
    groups = torch.where(present, groups, -1).to(torch.int32)
    return p.to(scores.dtype), groups


def fusedmax2d_backward(grad: Tensor, p: Tensor, groups: Tensor, width: int = 0) -> Tensor:
    """J g = mean of g over the entry's group − mean over the support; J is symmetric."""
    return grouped_backward(grad, p, _ids(groups), -1)


def fusedmax2d_derivative(p: Tensor, groups: Tensor, width: int) -> Tensor:
    """∂p/∂λ: a group loses 1 per neighbour below it and gains 1 per neighbour above, shared equally."""
    return centre(_slopes(p, groups, width), p, -1)


def fusedmax2d_backward_strength(
    grad: Tensor, p: Tensor, groups: Tensor, width: int
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, one per row."""
    by_strength = (grad * fusedmax2d_derivative(p, groups, width)).sum(-1)
    return fusedmax2d_backward(grad, p, groups).to(p.dtype), by_strength.to(torch.float64)


def _ids(groups: Tensor) -> Tensor:
    """The groups of the support, from 0; entries off the support must not count."""
    return groups.long().clamp(min=1) - 1


def _slopes(p: Tensor, groups: Tensor, width: int) -> Tensor:
    inside = (p != 0).to(p.dtype)
    return group_means(inside * _rises(groups, groups >= 0, width), inside, _ids(groups), -1)


def _rises(groups: Tensor, present: Tensor, width: int) -> Tensor:
    """−Dᵀ sign(D p): the number of neighbours above an entry minus the number below."""
    grid, there = groups.unflatten(-1, (-1, width)), present.unflatten(-1, (-1, width))
    across = _chain_rises(grid, there)
    down = _chain_rises(grid.mT, there.mT).mT
    return (across + down).flatten(-2)


def _chain_rises(groups: Tensor, present: Tensor) -> Tensor:
    forward = _step_from_last(groups, present)
    backward = _step_from_last(groups.flip(-1), present.flip(-1)).flip(-1)
    return -(forward + backward)


def _step_from_last(groups: Tensor, present: Tensor) -> Tensor:
    """The sign of the step from the group of the last present entry before; 0 if there is none."""
    before = neighbour_before(present)
    step = (groups - groups.gather(-1, before.clamp(min=0))).sign()
    return torch.where(present & (before >= 0), step, 0)


def _regions(along: Tensor, down: Tensor, present: Tensor) -> Tensor:
    """Labels of the regions that no jump divides: the smallest index in the region."""
    shape = present.shape
    place = torch.arange(shape[-2] * shape[-1], device=present.device).view(shape[1:])
    labels = place.expand(shape)
    while True:
        spread = _smallest_in_runs(labels, along, present)
        spread = _smallest_in_runs(spread.mT, down.mT, present.mT).mT
        if torch.equal(spread, labels):
            return labels.flatten(-2)
        labels = spread


def _smallest_in_runs(labels: Tensor, jumps: Tensor, present: Tensor) -> Tensor:
    runs = (jumps != 0).cumsum(-1)
    far = labels.shape[-1] * labels.shape[-2]
    visible = torch.where(present, labels, far)
    smallest = torch.full_like(labels, far).scatter_reduce(-1, runs, visible, "amin")
    return torch.where(present, smallest.gather(-1, runs), labels)


def _number(z: Tensor, regions: Tensor) -> Tensor:
    """The regions numbered from 0 in the order of their values; regions of equal value stay separate."""
    value = z.gather(-1, regions)
    by_region = regions.sort(dim=-1, stable=True).indices
    order = by_region.gather(-1, value.gather(-1, by_region).sort(dim=-1, stable=True).indices)
    sorted_regions = regions.gather(-1, order)
    begins = torch.cat(
        (torch.zeros_like(sorted_regions[..., :1]), sorted_regions.diff(dim=-1) != 0), -1
    )
    return torch.zeros_like(regions).scatter(-1, order, begins.cumsum(-1))


Prox = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


class Chains:
    """The rows of images (…, m, n) without their absent entries: chains of neighbours."""

    def __init__(self, present: Tensor, strength: Tensor, prox: Prox) -> None:
        self.shape, self._prox = present.shape, prox
        flat = present.reshape(-1, present.shape[-1])
        self._whole = bool(flat.all())
        self._order = (~flat).sort(dim=-1, stable=True).indices
        self._there = flat.gather(-1, self._order)
        self._strength = strength.expand(*present.shape[:-1], 1).reshape(-1, 1).contiguous()

    def prox(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(z, jumps) of every chain, in the shape of the images; absent entries do not change."""
        z, jumps = self._prox(self._packed(x), self._there, self._strength)
        return self._unpacked(torch.where(self._there, z, self._packed(x))), self._unpacked(jumps)

    def gap(self, z: Tensor, dual: Tensor) -> Tensor:
        """λ TV(z) − ⟨z, dual⟩ of every image, as a sum of terms that are not negative."""
        values, pulls = self._packed(z), torch.where(self._there, self._packed(dual), 0.0)
        differences = torch.where(self._there[:, 1:], values.diff(dim=-1), 0.0)
        variables = -pulls.cumsum(-1)[:, :-1]
        terms = self._strength * differences.abs() - variables * differences
        return terms.reshape(*self.shape[:-1], -1).sum((-2, -1))

    def _packed(self, image: Tensor) -> Tensor:
        flat = image.reshape(-1, self.shape[-1])
        return flat.contiguous() if self._whole else flat.gather(-1, self._order)

    def _unpacked(self, rows: Tensor) -> Tensor:
        if not self._whole:
            rows = torch.zeros_like(rows).scatter(-1, self._order, rows)
        return rows.view(self.shape)


def prox_grid(x: Tensor, rows: Chains, columns: Chains) -> tuple[Tensor, Tensor, Tensor]:
    """(z, jumps along rows, jumps along columns) of images (batch, height, width)."""
    limit = GAP_ROUNDING * x[0].numel() * (1 + x.abs().amax((-2, -1)))
    by_columns = torch.zeros_like(x)
    ahead, momentum = by_columns, torch.ones_like(x[:, :1, :1])
    gap = limit
    for _ in range(MAX_ROUNDS):
        held = x - ahead
        z, along = rows.prox(held)
        by_rows = held - z
        z, down = columns.prox((x - by_rows).mT)
        z, down = z.mT, down.mT
        before, by_columns = by_columns, x - by_rows - z
        gap = rows.gap(z, by_rows)
        if not bool((gap > limit).any()):
            return z, along, down
        backwards = ((ahead - by_columns) * (by_columns - before)).sum((-2, -1), keepdim=True) > 0
        momentum = torch.where(backwards, 1.0, momentum)
        following = (1 + torch.sqrt(1 + 4 * momentum.square())) / 2
        ahead = by_columns + (momentum - 1) / following * (by_columns - before)
        momentum = following
    raise FenchelError(
        "the prox of 2-D total variation must converge to a duality gap of"
        f" {limit.max().item():.3g} in {MAX_ROUNDS} rounds, got {gap.max().item():.3g}"
    )
