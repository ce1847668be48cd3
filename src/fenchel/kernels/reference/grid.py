"""The proximal operator of 2-D total variation, to a duality gap that is rounding.

    z = argmin ½‖z − x‖² + λ (Σ |z_{i,j+1} − z_{i,j}| + Σ |z_{i+1,j} − z_{i,j}|) = x − r − c

with r the dual image of the rows and c that of the columns. For given c the best r is exact,
x − c − prox_rows(x − c), and for given r the best c; taking turns, with Nesterov's momentum that starts
again whenever it points the wrong way, finds the groups in a few dozen rounds and is then as exact as
one likes. After a turn of the columns only the rows contribute to the duality gap, which bounds
½‖z − z*‖²: Σ λ|d| − u d over their differences d, none of it negative, u the dual variable.

Reference: Chambolle & Pock (2015), *A remark on accelerated block coordinate descent for computing the
proximity operators of a sum of convex functions*.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fenchel.errors import rule

Prox = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]

ROUNDS = 10_000
ROUNDING = 1e-15  # of the gap, an entry


class Chains:
    """The rows of images (…, m, n), of which absent entries are removed: chains of neighbours."""

    def __init__(self, present: Tensor, strength: Tensor, prox: Prox) -> None:
        self.shape, self._prox = present.shape, prox
        flat = present.reshape(-1, present.shape[-1])
        self._whole = bool(flat.all())
        self._order = (~flat).sort(dim=-1, stable=True).indices
        self._there = flat.gather(-1, self._order)
        self._strength = strength.expand(*present.shape[:-1], 1).reshape(-1, 1).contiguous()

    def prox(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(z, jumps) of every chain, in the places of its entries; absent entries stay as they are."""
        z, jumps = self._prox(self._packed(x), self._there, self._strength)
        return self._unpacked(torch.where(self._there, z, self._packed(x))), self._unpacked(jumps)

    def gap(self, z: Tensor, dual: Tensor) -> Tensor:
        """λ TV(z) − ⟨z, dual⟩ of every image, as a sum of terms none of which is negative."""
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
    limit = ROUNDING * x[0].numel() * (1 + x.abs().amax((-2, -1)))
    by_columns = torch.zeros_like(x)
    ahead, momentum = by_columns, torch.ones_like(x[:, :1, :1])
    gap = limit
    for _ in range(ROUNDS):
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
    raise rule(
        "the prox of 2-D total variation must converge",
        expected=f"a duality gap of at most {limit.max().item():.3g} in {ROUNDS} rounds",
        got=f"{gap.max().item():.3g}",
    )
