"""The digits example prints its table and draws its picture."""

from __future__ import annotations

import runpy

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from tests.pages import ROOT


def test_the_example_compares_dense_and_sparse_models(tmp_path, capsys):
    picture = tmp_path / "digits.png"
    example = runpy.run_path(str(ROOT / "examples" / "digits.py"))
    example["main"](["--seeds", "1", "--epochs", "2", "--picture", str(picture)])
    head, right, pixels, classes, among, _ = capsys.readouterr().out.splitlines()
    assert head.split() == ["softmax", "1.5-entmax", "learned", "α", "per", "head"]
    dense, sparse, learned = map(float, pixels.split()[-3:])
    assert dense == 64
    assert max(sparse, learned) < 32
    assert all(float(share) > 30 for share in right.split()[-3:])  # of ten classes
    assert classes.split()[-3] == "10.0"
    assert among.split()[-3] == "100.0"
    assert picture.read_bytes().startswith(b"\x89PNG")
