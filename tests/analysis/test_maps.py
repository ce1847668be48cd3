"""The figures of the maps are what they say."""

from __future__ import annotations

import pytest
import torch

import fenchel
from fenchel.analysis import maps


def test_figures_are_measured_on_the_maps():
    figures = {row.name: row for row in maps.measure(rows=32, columns=64, repetitions=1)}
    assert list(figures) == list(maps.MAPS)
    assert figures["softmax"].nonzeros == 64
    assert figures["sparsemax"].nonzeros < figures["1.5-entmax"].nonzeros < 64
    for row in figures.values():
        assert row.max_error < 1e-6
        assert row.row_sum_error < 2e-6
        assert row.forward > 0
        assert row.forward_backward > 0


def test_errors_of_a_wrong_map_show(monkeypatch):
    wrong = {**maps.MAPS, "sparsemax": lambda x: fenchel.sparsemax(x) + (x.dtype == torch.float32)}
    monkeypatch.setattr(maps, "MAPS", wrong)
    figures = {row.name: row for row in maps.measure(rows=2, columns=8, repetitions=1)}
    assert figures["sparsemax"].max_error == pytest.approx(1, abs=1e-6)
    assert figures["sparsemax"].row_sum_error == pytest.approx(8, abs=1e-5)


def test_every_picture_is_drawn(tmp_path):
    written = list(maps.draw(tmp_path / "pictures", points=9))
    names = ["alpha_sweep", "curves", "losses", *(f"simplex_{name}" for name in maps.MAPS)]
    assert [path.name for path in written] == [f"{name}.png" for name in names]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
