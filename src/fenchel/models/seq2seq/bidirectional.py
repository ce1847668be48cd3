"""Both directions of an LSTM layer at once, with a derivative of their own.

The directions are two halves of one batch: a step is one batched product and one cell. Sequences of
different lengths need no packing: each direction has its padding at the end, where it changes nothing
before it, and the last states are taken where each sequence ends.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fenchel.models.seq2seq.cell import cell_backward, cell_forward


class BidirectionalSteps(torch.autograd.Function):
    """Hidden states and cells of all steps, both (S, 2B, H).

    Args of `apply`:
        gates: (S, 2B, 4H), the inputs' part of the gates; the first half of the 2B is one direction.
        matrices: (2, H, 4H), of the state before, one for each direction.

    The backward pass keeps the gradients of all gates, and that of the matrices is one product.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, matrices: Tensor) -> tuple[Tensor, Tensor]:
        steps, rows = gates.shape[:2]
        hidden = gates.new_zeros(rows, matrices.shape[1])
        states, cells, activated = [hidden], [hidden], []
        for t in range(steps):
            product = torch.bmm(hidden.view(2, rows // 2, -1), matrices).view(rows, -1)
            hidden, cell, saved = cell_forward(gates[t], product, cells[-1])
            states.append(hidden)
            cells.append(cell)
            activated.append(saved)
        ctx.cells, ctx.activated = cells, activated
        all_states = torch.stack(states)
        ctx.save_for_backward(all_states, matrices)
        ctx.set_materialize_grads(False)
        return all_states[1:].clone(), torch.stack(cells[1:])

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_states: Tensor | None, by_cells: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        all_states, matrices = ctx.saved_tensors
        steps, rows, size = all_states.shape[0] - 1, all_states.shape[1], all_states.shape[2]
        back, by_gates = matrices.mT, all_states.new_empty(steps, rows, 4 * size)
        by_hidden, by_cell = None, None
        for t in reversed(range(steps)):
            by_hidden = _sum(by_hidden, None if by_states is None else by_states[t])
            by_cell = _sum(by_cell, None if by_cells is None else by_cells[t])
            if by_hidden is None:
                by_hidden = torch.zeros_like(all_states[0])
            by_gate, by_cell = cell_backward(
                by_hidden, by_cell, ctx.cells[t], ctx.cells[t + 1], ctx.activated[t]
            )
            by_gates[t] = by_gate
            by_hidden = torch.bmm(by_gate.view(2, rows // 2, -1), back).view(rows, size)
        before, after = (
            part.view(steps, 2, rows // 2, -1).transpose(0, 1).flatten(1, 2)
            for part in (all_states[:-1], by_gates)
        )
        return by_gates, torch.bmm(before.mT, after)


def _sum(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second
