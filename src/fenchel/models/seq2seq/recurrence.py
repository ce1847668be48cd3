"""The decoder's steps with a derivative of their own: fewer and larger products than autograd's.

Autograd would compute, at each of T steps, the gradients of every weight, of the keys and of the
values, and add them to those of the steps before. Here the backward pass keeps the gradients of the
gates, the scores and the attention of all steps, and each of these sums is one product over them all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fenchel.maps.entmax import ENTMAX
from fenchel.models.seq2seq.cell import cell_backward, cell_forward
from fenchel.models.seq2seq.interval import Places, expectation, moments, pulled, slopes


class Known(NamedTuple):
    """What is known before the first of T steps; N sentences, L layers, S source positions."""

    alpha: float  # of the attention
    places: Places | None  # of continuous attention
    kept: Tensor | None  # (L, T, N, H), dropout's 0 or 1/keep: of h̃, then of what enters layer 1 …
    mask: Tensor  # (N, 1, S), what may be attended
    gates: Tensor  # (T, N, 4H), the embeddings' part of the first layer's gates
    hidden: Tensor  # (L, N, H)
    cell: Tensor  # (L, N, H)
    keys: Tensor  # (N, S, H), projected
    values: Tensor  # (N, S, H), projected; for continuous attention with its coefficients
    of_query: Tensor  # (H, H), the query's part of h̃


class Trace:
    """What the backward pass needs of the steps, one entry a step: for each layer what enters it
    (own state included), its cells and gates; the attention's queries, weights and tanh; what mixes
    the values, which is the weights unless attention is continuous, and the moments it then needs."""

    def __init__(self, known: Known, matrices: tuple[Tensor, ...]) -> None:
        steps, rows = known.gates.shape[:2]
        self.entering = [known.gates.new_empty(steps, rows, m.shape[0]) for m in matrices]
        self.cells = [[start] for start in known.cell.unbind()]
        self.gates: list[list[Tensor]] = [[] for _ in matrices]
        self.queries: list[Tensor] = []
        self.weights: list[Tensor] = []
        self.moments: list[Tensor] = []
        self.mixing: list[Tensor] = []
        self.tanh: list[Tensor] = []


class Recurrence(torch.autograd.Function):
    """h̃ (N, T, H) and attention weights (N, T, S), from `Known`, a matrix (in, 4H) for each layer,
    and a bias (4H) for each layer but the first, whose bias is in the known gates."""

    @staticmethod
    def forward(ctx: Any, layers: int, *arguments: Any) -> tuple[Tensor, Tensor]:
        known = Known(*arguments[: len(Known._fields)])
        parameters = arguments[len(Known._fields) :]
        matrices, biases = parameters[:layers], parameters[layers:]
        rows = known.gates.shape[1]
        given = [known.gates, *(bias.expand(rows, -1).contiguous() for bias in biases)]
        trace, hidden = Trace(known, matrices), list(known.hidden.unbind())
        outputs, fed = [], torch.zeros_like(hidden[-1])
        for t in range(known.gates.shape[0]):
            _step_cells(t, known, given, matrices, hidden, fed, trace)
            fed = _step_attention(t, known, hidden[-1], trace)
            outputs.append(fed)
        ctx.trace, ctx.matrices = trace, matrices
        ctx.alpha, ctx.places = known.alpha, known.places
        ctx.save_for_backward(*known[2:])
        ctx.set_materialize_grads(False)
        return torch.stack(outputs, 1), torch.cat(trace.weights, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_outputs: Tensor, by_weights: Tensor | None) -> tuple[Any, ...]:
        known = Known(ctx.alpha, ctx.places, *ctx.saved_tensors)
        return _Backward(known, ctx.trace, ctx.matrices).run(by_outputs, by_weights)


def _step_cells(
    t: int,
    known: Known,
    given: list[Tensor],
    matrices: tuple[Tensor, ...],
    hidden: list[Tensor],
    below: Tensor,
    trace: Trace,
) -> None:
    """All layers of step t; `hidden` is replaced."""
    for layer, matrix in enumerate(matrices):
        if layer > 0:
            below = hidden[layer - 1]
            below = below if known.kept is None else below * known.kept[layer, t]
        entering = trace.entering[layer][t]
        torch.cat([below, hidden[layer]], 1, out=entering)
        known_gates = given[0][t] if layer == 0 else given[layer]
        hidden[layer], cell, gates = cell_forward(
            known_gates, entering @ matrix, trace.cells[layer][-1]
        )
        trace.cells[layer].append(cell)
        trace.gates[layer].append(gates)


def _step_attention(t: int, known: Known, query: Tensor, trace: Trace) -> Tensor:
    """h̃ (N, H) of step t."""
    scores = torch.bmm(query.unsqueeze(1), known.keys.mT)
    weights = ENTMAX.kernel(scores, known.alpha, known.mask, -1)
    mixing = _mixing(weights, known, trace)
    from_query = (query @ known.of_query.t()).unsqueeze(1)
    tanh = torch.baddbmm(from_query, mixing, known.values).squeeze(1).tanh_()
    trace.queries.append(query)
    trace.weights.append(weights)
    trace.mixing.append(mixing)
    trace.tanh.append(tanh)
    return tanh if known.kept is None else tanh * known.kept[0, t]


def _mixing(weights: Tensor, known: Known, trace: Trace) -> Tensor:
    """The weights of all rows of `known.values`."""
    if known.places is None:
        return weights
    found = moments(weights, known.places)
    trace.moments.append(found)
    expected = expectation(found, known.places)
    return torch.cat([weights, expected.to(weights.dtype)], -1)


class _Backward:
    """The steps in reverse. What a step passes back: by fed, and by each layer's state and cell."""

    def __init__(self, known: Known, trace: Trace, matrices: tuple[Tensor, ...]) -> None:
        self.known, self.trace, self.matrices = known, trace, matrices
        self.size = known.hidden.shape[-1]
        steps, rows = known.gates.shape[:2]
        self.by_gates = [known.gates.new_empty(steps, rows, 4 * self.size) for _ in matrices]
        self.by_hidden: list[Tensor | None] = [None] * len(matrices)
        self.by_cell: list[Tensor | None] = [None] * len(matrices)
        self.by_scores: list[Tensor] = []
        self.by_mixed: list[Tensor] = []
        if known.places is not None:
            self.slopes = slopes(torch.cat(trace.moments, 1), known.places)

    def run(self, by_outputs: Tensor | None, by_weights: Tensor | None) -> tuple[Any, ...]:
        known, steps = self.known, self.known.gates.shape[0]
        if by_outputs is None:
            by_outputs = known.gates.new_zeros(known.gates.shape[1], steps, self.size)
        by_fed: Tensor | None = None
        for t in reversed(range(steps)):
            by_seen = by_outputs[:, t] if by_fed is None else by_outputs[:, t] + by_fed
            asked = None if by_weights is None else by_weights[:, t : t + 1]
            by_fed = self._cells(t, self._attention(t, by_seen, asked))
        return self._sums()

    def _attention(self, t: int, by_seen: Tensor, by_weights: Tensor | None) -> Tensor:
        """The derivative by the query of step t."""
        known = self.known
        by_seen = by_seen if known.kept is None else by_seen * known.kept[0, t]
        by_mixed = torch.ops.aten.tanh_backward(by_seen, self.trace.tanh[t]).unsqueeze(1)
        by_weight = torch.bmm(by_mixed, known.values.mT)
        if known.places is not None:
            symbols = known.keys.shape[1]
            by_weight, by_expected = by_weight.split([symbols, by_weight.shape[2] - symbols], -1)
            by_weight = by_weight + pulled(by_expected, self.slopes[:, t : t + 1], known.places)
        if by_weights is not None:
            by_weight = by_weight + by_weights
        by_scores = ENTMAX.backward(by_weight, self.trace.weights[t], known.alpha, -1)
        self.by_mixed.append(by_mixed)
        self.by_scores.append(by_scores)
        by_query = (by_mixed.squeeze(1) @ known.of_query).unsqueeze(1)
        return torch.baddbmm(by_query, by_scores, known.keys).squeeze(1)

    def _cells(self, t: int, by_query: Tensor) -> Tensor:
        """All layers of step t, from the last to the first; the derivative by what was fed."""
        trace, from_above = self.trace, by_query
        for layer in reversed(range(len(self.matrices))):
            from_above = self._by_state(t, layer, from_above)
            cells = trace.cells[layer]
            by_gates, self.by_cell[layer] = cell_backward(
                from_above, self.by_cell[layer], cells[t], cells[t + 1], trace.gates[layer][t]
            )
            self.by_gates[layer][t] = by_gates
            by_entering = by_gates @ self.matrices[layer].t()
            from_above, self.by_hidden[layer] = by_entering.split(
                [by_entering.shape[1] - self.size, self.size], 1
            )
        return from_above

    def _by_state(self, t: int, layer: int, from_above: Tensor) -> Tensor:
        """By the hidden state of a layer: through the layer above, dropout included, and later."""
        later, kept = self.by_hidden[layer], self.known.kept
        if kept is None or layer + 1 == len(self.matrices):
            return from_above if later is None else from_above + later
        if later is None:
            return from_above * kept[layer + 1, t]
        return torch.addcmul(later, from_above, kept[layer + 1, t])

    def _sums(self) -> tuple[Any, ...]:
        """The gradients of everything, each in one product over all steps."""
        by_scores = torch.cat(self.by_scores[::-1], 1)
        by_mixed = torch.cat(self.by_mixed[::-1], 1)
        queries = torch.stack(self.trace.queries, 1)
        of_known = Known(
            alpha=None,  # type: ignore[arg-type]
            places=None,
            kept=None,
            mask=None,  # type: ignore[arg-type]
            gates=self.by_gates[0],
            hidden=torch.stack([by for by in self.by_hidden if by is not None]),
            cell=torch.stack([by for by in self.by_cell if by is not None]),
            keys=by_scores.mT @ queries,
            values=torch.cat(self.trace.mixing, 1).mT @ by_mixed,
            of_query=by_mixed.flatten(0, 1).t() @ queries.flatten(0, 1),
        )
        of_matrices = [
            entering.flatten(0, 1).t() @ by_gates.flatten(0, 1)
            for entering, by_gates in zip(self.trace.entering, self.by_gates, strict=True)
        ]
        of_biases = [by_gates.sum((0, 1)) for by_gates in self.by_gates[1:]]
        return None, *of_known, *of_matrices, *of_biases
