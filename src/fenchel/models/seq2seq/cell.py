"""The pointwise part of an LSTM cell, and its derivative: one kernel each on a GPU.

With (i, f, g, o) the sum of the contributions of input and state to the gates,

    c′ = σ(f) c + σ(i) tanh(g),    h′ = σ(o) tanh(c′).
"""

from __future__ import annotations

import torch
from torch import Tensor


def cell_forward(
    from_input: Tensor, from_state: Tensor, cell: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """h′ and c′ (N, H), and the activated gates, from two contributions (N, 4H) and the cell (N, H).

    >>> zeros = torch.zeros(1, 4)
    >>> cell_forward(zeros, zeros, torch.ones(1, 1))[:2]
    (tensor([[0.2311]]), tensor([[0.5000]]))
    """
    if cell.is_cuda:
        return torch.ops.aten._thnn_fused_lstm_cell(from_input, from_state, cell)
    gates = from_input + from_state
    enter, forget, candidate, out = gates.chunk(4, dim=-1)
    gates[:, : 2 * cell.shape[1]].sigmoid_()
    candidate.tanh_()
    out.sigmoid_()
    following = (forget * cell).addcmul_(enter, candidate)
    return torch.tanh(following).mul_(out), following, gates


def cell_backward(
    by_hidden: Tensor, by_following: Tensor, cell: Tensor, following: Tensor, gates: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients in either contribution (N, 4H) and in c, from those in h′ and c′."""
    if cell.is_cuda:
        by_gates, by_cell, _ = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(
            by_hidden.contiguous(), by_following.contiguous(), cell, following, gates, False
        )
        return by_gates, by_cell
    enter, forget, candidate, out = gates.chunk(4, dim=-1)
    shown = torch.tanh(following)
    by_cell = torch.ops.aten.tanh_backward(by_hidden * out, shown).add_(by_following)
    by_gates = torch.cat(
        [by_cell * candidate, by_cell * cell, by_cell * enter, by_hidden * shown], 1
    )
    slopes = gates - gates * gates
    slopes[:, 2 * cell.shape[1] : 3 * cell.shape[1]] = 1 - candidate * candidate
    return by_gates.mul_(slopes), by_cell * forget
