"""The ablations of the CPU kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import ablations
from benchmarks.ablations import ABLATIONS, KERNELS, Row, make_call, markdown, read, update
from benchmarks.against import ROOT
from benchmarks.environment import describe

CALLS = sorted({name for ablation in ABLATIONS for name in ablation.calls})


@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda ablation: ablation.path)
def test_every_path_can_be_switched_off(ablation, tmp_path):
    for name, _, _ in ablation.changes:
        file = tmp_path / KERNELS / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((ROOT / KERNELS / name).read_text(encoding="utf-8"), encoding="utf-8")
    ablation.apply(tmp_path)
    for name, _, new in ablation.changes:
        changed = (tmp_path / KERNELS / name).read_text(encoding="utf-8")
        assert new in changed
        compile(changed, name, "exec")


def test_a_line_that_has_gone_is_named(tmp_path):
    file = tmp_path / KERNELS / "entmax" / "narrow_rows.py"
    file.parent.mkdir(parents=True)
    file.write_text("NARROW_COLUMNS = 32\n")
    (narrow,) = (each for each in ABLATIONS if "narrow rows in" in each.path)
    with pytest.raises(SystemExit, match="must have this line once: NARROW_COLUMNS = 64"):
        narrow.apply(tmp_path)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_runs(name, monkeypatch):
    monkeypatch.setattr(ablations, "ELEMENTS", 128)
    assert make_call(name, 16)() is not None


def test_rows_of_other_calls_stay_and_those_of_lost_paths_go(tmp_path):
    environment = vars(describe("cpu", "0123"))
    path = ABLATIONS[0].path
    row = Row(**environment, path=path, call="sparsemax", rows=8, columns=16, dtype="float32",
              gain=1.5, least=1.4, largest=1.6)  # fmt: skip
    file = tmp_path / "ablations.csv"
    update(file, [row, replace(row, columns=64), replace(row, path="a lost path")])
    update(file, [replace(row, gain=2.0)])
    assert {(row.columns, row.gain) for row in read(file)} == {(16, 2.0), (64, 1.5)}
    assert f"| {path} | sparsemax | 64: 1.50, 16: 2.00 |" in markdown(read(file))
