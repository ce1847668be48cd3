"""The ways of the decoder that are compared compute the same gradients."""

from __future__ import annotations

import pytest
import torch

from benchmarks import decoding
from benchmarks.decoding import DECODERS
from benchmarks.inputs import make_inputs
from benchmarks.peers import OPERATIONS
from benchmarks.problems import Case, cpu_cases, gpu_cases

PAIRS = [(one, OPERATIONS["decoder", peer]) for one in DECODERS for peer in one.peers]


@pytest.mark.parametrize(("fast", "slow"), PAIRS, ids=lambda one: one.name)
def test_both_ways_compute_the_same_gradients(fast, slow, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decoding, "MODELS", {5: (9, 8, {"dropout": 0.0})})
    case = Case("decoder", 3, 5, dtype=torch.float64, backward=True, width=8)
    ours, theirs = (one.build(make_inputs(case), backward=True)() for one in (fast, slow))
    assert len(ours) > 10
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other)


def test_three_models_are_measured_on_every_device():
    for cases in (cpu_cases(), gpu_cases([])):
        found = [(c.rows, c.width, c.columns) for c in cases if c.family == "decoder"]
        assert found == [(32, 128, 10), (64, 300, 12), (64, 500, 25)]
        for _, width, columns in found:
            assert decoding.MODELS[columns][1] == width
