"""The largest error of a map, against the reference in float64 on a sample of the rows."""

from __future__ import annotations

from dataclasses import replace

import torch

import fenchel
from benchmarks.inputs import Inputs
from benchmarks.registry import OURS, Operation

SAMPLE = 64  # rows that are compared


def largest_error(operation: Operation, inputs: Inputs) -> float | None:
    """The largest error of the probabilities of the sample; None if the operation is not a map.

    The call is the one that is timed, with all rows, because the choice of the kernel depends on them.
    """
    exact = _ours(operation)
    if exact is None or exact.family != "maps":
        return None
    step = max(inputs.scores.shape[0] // SAMPLE, 1)
    scores, alpha = (tensor[::step].double() for tensor in (inputs.scores, inputs.alpha))
    with torch.no_grad():
        found = operation.call(inputs)[::step].double()
        with fenchel.implementation("reference"):
            expected = exact.call(replace(inputs, scores=scores, alpha=alpha))
    return (found - expected).abs().max().item()


def _ours(operation: Operation) -> Operation | None:
    """The operation of this library with the same values: itself, or the one whose peer it is."""
    return next((o for o in OURS if o == operation or _is_peer(operation, o)), None)


def _is_peer(operation: Operation, ours: Operation) -> bool:
    return operation.family == ours.family and operation.name in ours.peers
