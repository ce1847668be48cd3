"""The pointwise part of an LSTM cell and its derivative, one kernel each on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor


def lstm_cell(from_input: Tensor, from_state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The next hidden state and cell, from two parts (N, 4H) of the gates and the cell (N, H).

    With (i, f, g, o) the sum of both parts,

        c′ = σ(f) c + σ(i) tanh(g),    h′ = σ(o) tanh(c′).

    >>> zeros = torch.zeros(1, 4)
    >>> lstm_cell(zeros, zeros, torch.ones(1, 1))
    (tensor([[0.2311]]), tensor([[0.5000]]))
    """
    if cell.is_cuda:
        kind = from_state.dtype
        given, cell = (part.to(kind).contiguous() for part in (from_input, cell))
        return torch.ops.aten._thnn_fused_lstm_cell(given, from_state, cell)[:2]
    enter, forget, candidate, out = (from_input + from_state).chunk(4, dim=-1)
    following = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
    return torch.sigmoid(out) * torch.tanh(following), following


def cell_forward(
    from_input: Tensor, from_state: Tensor, cell: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`lstm_cell` without autograd, and what `cell_backward` needs: (N, 4H), the gates."""
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
    by_hidden: Tensor, by_following: Tensor | None, cell: Tensor, following: Tensor, gates: Tensor
) -> tuple[Tensor, Tensor]:
    """The derivatives by both parts of the gates, (N, 4H), and by the cell, (N, H)."""
    if cell.is_cuda:
        by_following = None if by_following is None else by_following.contiguous()
        by_gates, by_cell, _ = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(
            by_hidden.contiguous(), by_following, cell, following, gates, False
        )
        return by_gates, by_cell
    enter, forget, candidate, out = gates.chunk(4, dim=-1)
    shown = torch.tanh(following)
    by_cell = torch.ops.aten.tanh_backward(by_hidden * out, shown)
    if by_following is not None:
        by_cell += by_following
    by_gates = torch.cat(
        [by_cell * candidate, by_cell * cell, by_cell * enter, by_hidden * shown], 1
    )
    slopes = gates - gates * gates
    slopes[:, 2 * cell.shape[1] : 3 * cell.shape[1]] = 1 - candidate * candidate
    return by_gates.mul_(slopes), by_cell * forget
