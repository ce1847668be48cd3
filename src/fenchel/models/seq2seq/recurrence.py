"""The steps of the decoder with a backward pass of their own.

At each of T steps autograd would compute the gradients of every weight, of the keys and of the values,
and add them to those of the other steps. This backward pass stores the gradients of the gates, the
scores and the contexts of all steps instead; each of the sums is then one matrix product.

`benchmarks/decoding.py` measures it against autograd.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fenchel.models.seq2seq.cell import cell_backward, cell_forward
from fenchel.models.seq2seq.interval import Positions, expectation, moments, pull_back, slopes
from fenchel.operators.maps import ENTMAX


class Known(NamedTuple):
    """What is known before the first of T steps; B sentences, S source positions, L layers."""

    alpha: float  # α of the attention
    positions: Positions | None  # of continuous attention
    kept: (
        Tensor | None
    )  # (L, T, B, H), dropout's 0 or 1/(1 − p): of h̃, then of the inputs of layers 1, …
    mask: Tensor  # (B, 1, S), False at padding
    gates: Tensor  # (T, B, 4H), the embeddings' contribution to the gates of layer 0, with the bias
    hidden: Tensor  # (L, B, H), the initial state
    cell: Tensor  # (L, B, H)
    keys: Tensor  # (B, S, H), projected
    values: Tensor  # (B, S, H), projected; in continuous attention followed by coefficients
    query_weight: Tensor  # (H, H), from the query to h̃

    def drop(self, layer: int, t: int, inputs: Tensor) -> Tensor:
        """Apply the dropout of step t."""
        return inputs if self.kept is None else inputs * self.kept[layer, t]


class Trace:
    """What the backward pass needs of every step.

    Per layer: the inputs of its matrix, its cells and its gates. Of attention: queries, weights, the
    coefficients of `values` (the weights, followed by expectations), moments, and the tanh.
    """

    def __init__(self, known: Known, matrices: tuple[Tensor, ...]) -> None:
        steps, rows = known.gates.shape[:2]
        self.inputs = [known.gates.new_empty(steps, rows, m.shape[0]) for m in matrices]
        self.cells = [[start] for start in known.cell.unbind()]
        self.gates: list[list[Tensor]] = [[] for _ in matrices]
        self.queries: list[Tensor] = []
        self.weights: list[Tensor] = []
        self.moments: list[Tensor] = []
        self.coefficients: list[Tensor] = []
        self.tanh: list[Tensor] = []


class Recurrence(torch.autograd.Function):
    """h̃ (B, T, H) and attention weights (B, T, S).

    Args of `apply`: the number of layers, the fields of `Known`, per layer a matrix (in, 4H) of its
    inputs, and a bias (4H) per layer above the first.
    """

    @staticmethod
    def forward(ctx: Any, layers: int, *arguments: Any) -> tuple[Tensor, Tensor]:
        known = Known(*arguments[: len(Known._fields)])
        parameters = arguments[len(Known._fields) :]
        matrices, biases = parameters[:layers], parameters[layers:]
        steps, rows = known.gates.shape[:2]
        above = [bias.expand(rows, -1).contiguous() for bias in biases]
        trace, hidden, outputs = Trace(known, matrices), list(known.hidden.unbind()), []
        fed = torch.zeros_like(hidden[-1])
        for t in range(steps):
            gates = [known.gates[t], *above]
            _step_cells(t, known, gates, matrices, hidden, fed, trace)
            fed = _step_attention(t, known, hidden[-1], trace)
            outputs.append(fed)
        ctx.trace, ctx.matrices = trace, matrices
        ctx.alpha, ctx.positions = known.alpha, known.positions
        ctx.save_for_backward(*known[2:])
        ctx.set_materialize_grads(False)
        return torch.stack(outputs, 1), torch.cat(trace.weights, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_outputs: Tensor | None, by_weights: Tensor | None) -> tuple[Any, ...]:
        known = Known(ctx.alpha, ctx.positions, *ctx.saved_tensors)
        return _Backward(known, ctx.trace, ctx.matrices).run(by_outputs, by_weights)


def _step_cells(
    t: int,
    known: Known,
    gates: list[Tensor],
    matrices: tuple[Tensor, ...],
    hidden: list[Tensor],
    below: Tensor,
    trace: Trace,
) -> None:
    """All layers of step t; replaces the states in `hidden`."""
    for layer, matrix in enumerate(matrices):
        if layer > 0:
            below = known.drop(layer, t, hidden[layer - 1])
        inputs = trace.inputs[layer][t]
        torch.cat([below, hidden[layer]], 1, out=inputs)
        hidden[layer], cell, activated = cell_forward(
            gates[layer], inputs @ matrix, trace.cells[layer][-1]
        )
        trace.cells[layer].append(cell)
        trace.gates[layer].append(activated)


def _step_attention(t: int, known: Known, query: Tensor, trace: Trace) -> Tensor:
    """h̃ (B, H) of step t."""
    scores = torch.bmm(query.unsqueeze(1), known.keys.mT)
    weights = coefficients = ENTMAX.below_autograd(scores, known.alpha, known.mask, -1)
    if known.positions is not None:
        trace.moments.append(moments(weights, known.positions))
        expected = expectation(trace.moments[-1], known.positions)
        coefficients = torch.cat([weights, expected.to(weights.dtype)], -1)
    from_query = (query @ known.query_weight.t()).unsqueeze(1)
    tanh = torch.baddbmm(from_query, coefficients, known.values).squeeze(1).tanh_()
    trace.queries.append(query)
    trace.weights.append(weights)
    trace.coefficients.append(coefficients)
    trace.tanh.append(tanh)
    return known.drop(0, t, tanh)


class _Backward:
    """Runs the steps in reverse; between steps, keeps the gradients in all states and cells."""

    def __init__(self, known: Known, trace: Trace, matrices: tuple[Tensor, ...]) -> None:
        self.known, self.trace, self.matrices = known, trace, matrices
        steps, rows = known.gates.shape[:2]
        self.by_gates = [known.gates.new_empty(steps, rows, m.shape[1]) for m in matrices]
        self.by_hidden = list(torch.zeros_like(known.hidden).unbind())
        self.by_cell = list(torch.zeros_like(known.cell).unbind())
        self.by_scores: list[Tensor] = []
        self.by_mixed: list[Tensor] = []
        if known.positions is not None:
            self.slopes = slopes(torch.cat(trace.moments, 1), known.positions)

    def run(self, by_outputs: Tensor | None, by_weights: Tensor | None) -> tuple[Any, ...]:
        by_fed = torch.zeros_like(self.known.hidden[-1])
        for t in reversed(range(self.known.gates.shape[0])):
            by_seen = by_fed if by_outputs is None else by_outputs[:, t] + by_fed
            asked = None if by_weights is None else by_weights[:, t : t + 1]
            by_fed = self._cells(t, self._attention(t, by_seen, asked))
        return self._sums()

    def _attention(self, t: int, by_seen: Tensor, by_weights: Tensor | None) -> Tensor:
        """The gradient in the query of step t."""
        known = self.known
        by_tanh = known.drop(0, t, by_seen)
        by_mixed = torch.ops.aten.tanh_backward(by_tanh, self.trace.tanh[t]).unsqueeze(1)
        by_weight = torch.bmm(by_mixed, known.values.mT)
        if known.positions is not None:
            symbols = known.keys.shape[1]
            by_weight, by_expected = by_weight.tensor_split([symbols], -1)
            by_weight = by_weight + pull_back(
                by_expected, self.slopes[:, t : t + 1], known.positions
            )
        if by_weights is not None:
            by_weight = by_weight + by_weights
        by_scores = ENTMAX.backward(by_weight, self.trace.weights[t], known.alpha, -1)
        self.by_mixed.append(by_mixed)
        self.by_scores.append(by_scores)
        by_query = (by_mixed.squeeze(1) @ known.query_weight).unsqueeze(1)
        return torch.baddbmm(by_query, by_scores, known.keys).squeeze(1)

    def _cells(self, t: int, by_query: Tensor) -> Tensor:
        """All layers of step t, from the last to the first; returns the gradient in the fed h̃."""
        trace, size, above = self.trace, by_query.shape[1], by_query
        for layer in reversed(range(len(self.matrices))):
            cells = trace.cells[layer]
            by_gates, self.by_cell[layer] = cell_backward(
                above + self.by_hidden[layer],
                self.by_cell[layer],
                cells[t],
                cells[t + 1],
                trace.gates[layer][t],
            )
            self.by_gates[layer][t] = by_gates
            by_inputs = by_gates @ self.matrices[layer].t()
            above, self.by_hidden[layer] = by_inputs.tensor_split([by_inputs.shape[1] - size], 1)
            if layer > 0:
                above = self.known.drop(layer, t, above)
        return above

    def _sums(self) -> tuple[Any, ...]:
        """The gradients in all arguments, each one product over all steps."""
        by_scores = torch.cat(self.by_scores[::-1], 1)
        by_mixed = torch.cat(self.by_mixed[::-1], 1)
        queries = torch.stack(self.trace.queries, 1)
        of_known = {
            "gates": self.by_gates[0],
            "hidden": torch.stack(self.by_hidden),
            "cell": torch.stack(self.by_cell),
            "keys": by_scores.mT @ queries,
            "values": torch.cat(self.trace.coefficients, 1).mT @ by_mixed,
            "query_weight": by_mixed.flatten(0, 1).t() @ queries.flatten(0, 1),
        }
        of_matrices = [
            inputs.flatten(0, 1).t() @ by_gates.flatten(0, 1)
            for inputs, by_gates in zip(self.trace.inputs, self.by_gates, strict=True)
        ]
        of_biases = [by_gates.sum((0, 1)) for by_gates in self.by_gates[1:]]
        return None, *map(of_known.get, Known._fields), *of_matrices, *of_biases
