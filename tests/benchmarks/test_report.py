"""What the benchmarks write and draw from their rows."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from benchmarks.picture import ratio_picture
from benchmarks.report import markdown
from tests.benchmarks.made_up import row


def test_report_shows_ratios_reasons_and_the_change_since_a_commit():
    rows = [
        row(ratio_q20=1.9, ratio_q50=2.0, ratio_q80=2.5, commit="bbbb"),
        row(operation="entmax.sparsemax", ratio_q50=None, note="one call takes a day"),
    ]
    text = markdown(rows, [row(commit="aaaa", ratio_q50=4.0)])
    assert "| `fenchel.sparsemax` | 2 (1.9–2.5) |" in text
    assert "| `entmax.sparsemax` | left out |" in text
    assert "one call takes a day" in text
    assert "Against commit aaaa" in text
    assert "| `fenchel.sparsemax` | 4 × 8 | float32 | forward | 4 | 2 | 0.50 |" in text


def test_report_of_a_gpu_shows_copies_memory_and_the_cost_of_a_call():
    layer = row(operation="fenchel.linear_entmax_loss(1.5)", family="layers", width=5, peak_mib=7.2)
    on_gpu = {"device": "cuda", "triton": "3.6", "copies_q50": 1.25}
    host = row(clock="host", milliseconds_q50=0.02)
    text = markdown([row(**on_gpu), layer, host])
    assert "Triton 3.6" in text
    assert "| `fenchel.sparsemax` | 1.25 |" in text
    assert "| operation | 4 × 5 × 8 |" in text
    assert "| `fenchel.linear_entmax_loss(1.5)` | 7 |" in text
    assert "Microseconds (median):\n\n| operation | 4 × 8 |\n| --- | ---: |" in text
    assert "| `fenchel.sparsemax` | 20 |" in text


def test_report_says_what_a_score_of_a_structured_map_costs():
    rows = [row(family="structured", operation="fenchel.fusedmax", milliseconds_q50=0.0032)]
    text = markdown(rows)
    assert "| `fenchel.fusedmax` | 100 |" in text  # 3200 ns for 4 × 8 scores
    peer = "CPU and back, fenchel.fusedmax"
    text = markdown([row(family="structured", peer=peer, speedup_q50=25.0)])
    assert "| `fenchel.sparsemax` | 25 (CPU and back) |" in text


def test_picture_has_a_line_for_every_map_and_a_bar_for_every_loss():
    rows = [
        row(ratio_q50=2.0),
        row(ratio_q50=4.0, columns=16),
        row(ratio_q50=3.0, direction="forward+backward"),
        row(
            ratio_q50=0.5,
            family="losses",
            direction="forward+backward",
            operation="fenchel.entmax_loss(1.5)",
        ),
        row(ratio_q50=9.0, clock="host"),
    ]
    forward, both, losses = ratio_picture(rows).axes
    assert [list(line.get_ydata()) for line in forward.lines[1:]] == [[2.0, 4.0]]
    assert [list(line.get_ydata()) for line in both.lines[1:]] == [[3.0]]
    assert [bar.get_width() for bar in losses.patches] == [0.5]


def test_picture_shows_structured_maps_and_continuous_attention_below():
    both = {"direction": "forward+backward"}
    structured = {"family": "structured", "baseline": "fenchel.sparsemax"} | both
    image = {"family": "continuous-regions", "ratio_q50": 9.0} | both
    rows = [
        row(ratio_q50=2.0),
        row(operation="fenchel.sparsemax", ratio_q50=1.0, **structured),
        row(operation="fenchel.fusedmax", ratio_q50=5.0, **structured),
        row(family="continuous", operation="fenchel.continuous.entmax(2)", ratio_q50=0.04, **both),
        row(operation="softmax attention", columns=49, milliseconds_q50=3.0, **image),
        row(operation="softmax attention", columns=196, milliseconds_q50=4.0, **image),
    ]
    axes = ratio_picture(rows).axes
    upper, below = axes[0], axes[3:]
    assert upper.get_title() == "maps, forward, float32"
    assert [list(line.get_ydata()) for line in below[0].lines[1:]] == [[5.0]]
    assert [bar.get_width() for bar in below[1].patches] == [0.04]
    assert [list(line.get_ydata()) for line in below[2].lines] == [[3.0, 4.0]]


def test_report_says_which_commit_a_table_is_of():
    text = markdown([row(commit="abc"), row(commit="def", dtype="bfloat16")])
    assert "commit abc" in text
    assert "commit def" in text
    assert "maps, bfloat16, forward\n" in text.partition("commit def")[2]
