"""The command of the benchmarks: what it writes, and what it survives."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

pytest.importorskip("entmax")
pytest.importorskip("matplotlib")

import fenchel
from benchmarks import __main__ as command
from benchmarks.peers import OPERATIONS
from benchmarks.problems import cpu_cases
from benchmarks.rows import Row, measured_before, read


def test_there_is_nothing_to_draw_without_results(tmp_path):
    with pytest.raises(fenchel.FenchelError, match="no results to draw"):
        command.main(["--draw", "--out", str(tmp_path)])


def test_command_writes_rows_with_all_fields_and_compares_with_a_commit(tmp_path, capsys):
    arguments = ["--quick", "--elements", "640", "--only", "fenchel.sparsemax", "--out"]
    command.main([*arguments, str(tmp_path)])
    rows = read(tmp_path / "cpu-quick.csv")
    header = (tmp_path / "cpu-quick.csv").read_text().splitlines()[0]
    assert header.split(",") == [field.name for field in fields(Row)]
    names = {"torch.softmax", "fenchel.sparsemax", "F.cross_entropy", "fenchel.sparsemax_loss"}
    assert {row.operation for row in rows} == names
    measured = [c for c in cpu_cases(640) if not c.family.startswith(("continuous", "attention"))]
    alone = [c for c in measured if c.family == "structured"]  # there it is the baseline
    assert len(rows) == 2 * len(measured) - len(alone)
    for line in rows:
        assert line.commit
        assert line.hardware
        assert line.date
        if not line.note:
            assert line.repetitions >= 1
            assert line.milliseconds_q20 <= line.milliseconds_q50 <= line.milliseconds_q80
            assert line.ratio_q50 > 0
    assert (tmp_path / "cpu-quick.png").read_bytes().startswith(b"\x89PNG")

    command.main([*arguments, str(tmp_path), "--base", rows[0].commit[:4]])
    assert f"Against commit {rows[0].commit}" in (tmp_path / "cpu-quick.md").read_text()
    (tmp_path / "cpu-quick.md").unlink()
    command.main(["--quick", "--draw", "--out", str(tmp_path)])
    assert (tmp_path / "cpu-quick.md").read_text().startswith("# Benchmarks")
    draw = ["--quick", "--draw", "--out", str(tmp_path), "--picture", str(tmp_path / "some.png")]
    command.main([*draw, "--only", "^maps$"])
    assert (tmp_path / "some.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(fenchel.FenchelError, match="no results to draw"):
        command.main([*draw, "--only", "nothing of the kind"])
    with pytest.raises(fenchel.FenchelError, match=r"--base must be a commit in cpu-quick\.csv"):
        command.main([*arguments, str(tmp_path), "--base", "no such commit"])
    assert "wrote cpu-quick.md and cpu-quick.png" in capsys.readouterr().out.replace("\n", " ")


def test_a_run_that_is_killed_loses_only_the_case_in_flight_and_can_go_on(tmp_path, capsys):
    killed = """
import os, signal, sys
from benchmarks import __main__ as command
update, cases = command.update, iter(range(2))
def update_and_die(path, rows):
    if next(cases, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return update(path, rows)
command.update = update_and_die
command.main(sys.argv[1:])
"""
    arguments = ["--quick", "--elements", "640", "--only", "^fenchel.sparsemax$"]
    arguments += ["--commit", "abc", "--out", str(tmp_path)]
    root = Path(command.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(root)}
    run = [sys.executable, "-c", killed, *arguments]
    assert subprocess.run(run, env=environment, check=False, capture_output=True).returncode < 0
    path = tmp_path / "cpu-quick.csv"
    assert len(measured_before(path, "abc")) == 2 * 2
    capsys.readouterr()
    command.main([*arguments, "--resume"])
    measured = capsys.readouterr().out
    assert "measuring maps, float32 6/6" in measured
    maps = {case for case, _ in measured_before(path, "abc") if case.family == "maps"}
    assert maps == {case for case in cpu_cases(640) if case.family == "maps"}
    command.main([*arguments, "--resume"])
    assert "measuring" not in capsys.readouterr().out


def test_a_case_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    def fail_at_512(x):
        if x.scores.shape[-1] == 512:
            raise RuntimeError("a kernel that does not compile")
        return fenchel.fusedmax(x.scores)

    key = ("structured", "fenchel.fusedmax")
    monkeypatch.setitem(OPERATIONS, key, replace(OPERATIONS[key], call=fail_at_512))
    with pytest.raises(ExceptionGroup, match="cases that could not be measured") as raised:
        command.main(
            ["--quick", "--elements", "640", "--only", "structured", "--out", str(tmp_path)]
        )
    (failure,) = raised.value.exceptions
    assert failure.__notes__ == ["while measuring structured 1 × 512 float32 forward+backward"]
    assert {row.columns for row in read(tmp_path / "cpu-quick.csv")} == {64}
    assert (tmp_path / "cpu-quick.md").exists()


def test_a_family_can_be_asked_for_by_its_name(tmp_path):
    arguments = ["--quick", "--elements", "640", "--out", str(tmp_path), "--only"]
    command.main([*arguments, "structured"])
    command.main([*arguments, "continuous$"])
    rows = read(tmp_path / "cpu-quick.csv")
    assert {row.family for row in rows} == {"structured", "continuous"}
    assert {row.operation for row in rows if row.family == "structured"} == {
        "fenchel.sparsemax",
        "fenchel.fusedmax",
        "fenchel.oscarmax",
    }


def test_a_device_that_is_not_there_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(
        fenchel.FenchelError, match="--device cuda must have a CUDA device, got none"
    ):
        command.main(["--device", "cuda", "--out", str(tmp_path)])


@pytest.mark.parametrize("options", [[], ["--draw"]])
def test_a_pattern_is_a_regular_expression(tmp_path, options):
    message = r"--only must be a regular expression, got 'a\(' \(missing \), unterminated"
    with pytest.raises(fenchel.FenchelError, match=message):
        command.main([*options, "--only", "a(", "--out", str(tmp_path)])


def test_a_mistake_in_the_call_is_one_line():
    root = Path(command.__file__).parents[1]
    found = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "("],
        cwd=root, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 2
    (line,) = found.stderr.splitlines()
    assert line.startswith("benchmarks: --only must be a regular expression, got")


def test_a_pattern_without_a_match_is_an_error(tmp_path):
    with pytest.raises(fenchel.FenchelError, match="--only must match"):
        command.main(["--quick", "--only", "no such operation", "--out", str(tmp_path)])
