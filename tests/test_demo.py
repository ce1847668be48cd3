"""The demo runs end to end, and its figures are what they say."""

from __future__ import annotations

import sys

import pytest
import torch

import fenchel
from fenchel import demo


def test_demo_draws_prints_and_names_its_files(tmp_path, capsys):
    out = tmp_path / "pictures"
    demo.main(
        ["--out", str(out), "--rows", "4", "--columns", "16", "--repetitions", "1", "--points", "9"]
    )
    printed = capsys.readouterr().out
    files = sorted(path.name for path in out.iterdir())
    assert files == sorted(
        ["alpha_sweep.png", "curves.png", "losses.png"]
        + [f"simplex_{name}.png" for name in demo.MAPS]
    )
    assert all((out / name).read_bytes().startswith(b"\x89PNG") for name in files)
    assert "4 × 16" in printed
    for name in (*demo.MAPS, *files):
        assert name in printed.replace("\n", "")


def test_figures_are_measured_on_the_maps():
    figures = {row.name: row for row in demo.measure(rows=32, columns=64, repetitions=1)}
    assert list(figures) == list(demo.MAPS)
    assert figures["softmax"].nonzeros == 64
    assert figures["sparsemax"].nonzeros < figures["1.5-entmax"].nonzeros < 64
    for row in figures.values():
        assert row.max_error < 1e-6
        assert row.row_sum_error < 2e-6
        assert row.forward > 0
        assert row.forward_backward > 0


def test_errors_of_a_wrong_map_show(monkeypatch):
    wrong = {**demo.MAPS, "sparsemax": lambda x: fenchel.sparsemax(x) + (x.dtype == torch.float32)}
    monkeypatch.setattr(demo, "MAPS", wrong)
    figures = {row.name: row for row in demo.measure(rows=2, columns=8, repetitions=1)}
    assert figures["sparsemax"].max_error == pytest.approx(1, abs=1e-6)
    assert figures["sparsemax"].row_sum_error == pytest.approx(8, abs=1e-5)


def test_missing_rich_names_the_extra(monkeypatch, tmp_path):
    for module in ("rich", "rich.console"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(fenchel.FenchelError, match=r"fenchel\[dev\]"):
        demo.main(["--out", str(tmp_path)])
