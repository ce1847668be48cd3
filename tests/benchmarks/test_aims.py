"""What a GPU aims at: the worst row decides, and what was not measured is not judged."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from benchmarks.__main__ import select
from benchmarks.aims import AIMS, Aim, table_of_aims
from benchmarks.problems import gpu_cases
from benchmarks.report import markdown
from tests.benchmarks.made_up import row


def on_gpu(**changes: Any):
    return row(**{"device": "cuda", "columns": 1024} | changes)


def judged(*rows) -> dict[str, tuple[str, ...]]:
    return {what: rest for what, *rest in table_of_aims(rows)}


def test_the_worst_row_decides_and_is_named():
    rows = [on_gpu(ratio_q50=0.5), on_gpu(ratio_q50=1.25, dtype="bfloat16"), on_gpu(ratio_q50=0.9)]
    _, worst, holds, where = judged(*rows)["sparsemax, 1.5-entmax: time over `torch.softmax`"]
    assert (worst, holds) == ("1.25", "no")
    assert where == "`fenchel.sparsemax`, 4 × 1024, bfloat16"
    assert "| ≤ 1 | 1.25 | no |" in markdown(rows)


def test_a_bound_from_below_is_missed_by_the_least():
    aims = judged(on_gpu(speedup_q50=3.5), on_gpu(speedup_q50=2.5, columns=2048))
    assert aims["… times as fast as the fastest peer"][:3] == ["≥ 3", "2.5", "no"]


def test_memory_is_compared_with_the_baseline_of_the_same_case():
    name, base = "fenchel.linear_entmax_loss(1.5)", "F.linear, fenchel.entmax_loss(1.5)"
    layer = {"family": "layers", "direction": "forward+backward", "baseline": base, "width": 8}
    ours = on_gpu(operation=name, peak_mib=10.0, **layer)
    theirs = [on_gpu(operation=base, peak_mib=peak, **layer | {"width": w}) for peak, w in
              ((100.0, 8), (1.0, 16))]  # fmt: skip
    assert judged(ours, *theirs)["… peak memory over theirs"][1:3] == ["0.1", "yes"]
    assert "… peak memory over theirs" not in judged(ours)


def test_other_baselines_directions_and_machines_are_not_meant():
    structured = on_gpu(family="structured", baseline="fenchel.sparsemax", ratio_q50=9.0)
    host = on_gpu(clock="host", ratio_q50=9.0)
    assert judged(structured, host, row(ratio_q50=9.0)) == {}
    assert "## Aims" not in markdown([row(ratio_q50=9.0)])


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.what)
def test_no_number_keeps_no_bound(aim: Aim):
    assert not aim.holds(math.nan)


def test_no_number_is_the_worst():
    rows = [on_gpu(error=1e-9), on_gpu(error=math.nan), on_gpu(error=1e-8)]
    assert judged(*rows)["every map: largest error, float32"][1:3] == ["nan", "no"]


def test_every_aim_concerns_something_that_is_measured():
    measured = [
        on_gpu(
            operation=operation.name, baseline=operation.baseline, family=case.family,
            dtype=case.dtype_name, direction=case.direction, columns=case.columns,
            clock=case.clock,
        )
        for case in gpu_cases([torch.float32, torch.bfloat16])
        for operation in select("", case)
    ]  # fmt: skip
    for aim in AIMS:
        assert any(map(aim.concerns, measured)), aim.what
