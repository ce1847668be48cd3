"""How exact a map is: its largest distance from the reference in float64, on some of the rows."""

from __future__ import annotations

from dataclasses import replace

import torch

import fenchel
from benchmarks.inputs import Inputs
from benchmarks.registry import OURS, Operation

SAMPLE = 64  # rows that are compared


def largest_error(operation: Operation, inputs: Inputs) -> float | None:
    """The error of the worst probability of the sample; None for what is no map of ours or a peer's.

    The call is the one that is timed, with all its rows, since their number chooses the kernel.
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
    """The operation of this library that computes the same: itself, or the one whose peer it is."""
    return next((o for o in OURS if o == operation or _is_peer(operation, o)), None)


def _is_peer(operation: Operation, ours: Operation) -> bool:
    return operation.family == ours.family and operation.name in ours.peers
