"""Rows of results: every field, the right times divided, and a file that keeps them."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import pytest
import torch

pytest.importorskip("entmax")

import fenchel
from benchmarks.environment import Environment, describe
from benchmarks.problems import Case
from benchmarks.rows import Row, make_rows, measured_before, newest, read, update
from benchmarks.runner import Measurement
from benchmarks.timing import HostTimer, WallTimer, timer_for
from tests.benchmarks.made_up import operation, row


def test_rows_divide_by_the_baseline_and_the_peer():
    measured = [
        Measurement(operation("slow"), [2.0, 4.0, 8.0]),
        Measurement(operation("fast", peer="slow"), [1.0, 1.0], peak=3 * 2**20),
        Measurement(operation("absent", peer="slow"), note="too slow"),
    ]
    case = Case("maps", 4, 8)
    baseline, fast, absent = make_rows(case, measured, describe("cpu"))
    assert (baseline.ratio_q20, baseline.ratio_q50, baseline.ratio_q80) == (1, 1, 1)
    assert fast.ratio_q50 == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert fast.speedup_q50 == pytest.approx((2 + 4) / 2)
    assert fast.milliseconds_q50 == 1000
    assert (fast.peer, fast.peak_mib, baseline.peak_mib) == ("slow", 3.0, None)
    assert fast.repetitions == 2
    assert absent.ratio_q50 is absent.speedup_q50 is absent.milliseconds_q50 is None
    assert (absent.repetitions, absent.note) == (0, "too slow")


def test_rows_compare_with_a_copy_and_with_the_fastest_peer():
    ours = replace(operation("ours"), peers=("other", "slow", "absent"))
    measured = [
        Measurement(operation("copy"), [1.0, 2.0]),
        Measurement(operation("slow"), [8.0, 8.0]),
        Measurement(operation("other"), [6.0, 6.0]),
        Measurement(ours, [2.0, 4.0]),
    ]
    row = make_rows(Case("maps", 4, 8), measured, describe("cpu"))[-1]
    assert (row.copies_q50, row.peer, row.speedup_q50) == (2.0, "other", (3.0 + 1.5) / 2)


def test_environment_says_where_it_ran():
    environment = describe("cpu")
    assert describe("cpu", commit="abc") == replace(environment, commit="abc", dirty=False)
    assert [f.name for f in fields(Row)][: len(fields(Environment))] == [
        f.name for f in fields(Environment)
    ]
    assert environment.hardware
    assert environment.threads == torch.get_num_threads()
    assert environment.torch == torch.__version__
    assert environment.fenchel == fenchel.__version__
    assert environment.peers.startswith("entmax 1.3")
    assert isinstance(timer_for(Case("maps", 4, 8)), WallTimer)
    assert HostTimer().time(lambda: time.sleep(1e-3)) >= 1e-3
    assert isinstance(timer_for(Case("maps", 4, 8, clock="host")), HostTimer)


def test_rows_survive_the_file_and_replace_only_their_own_commit(tmp_path):
    path = tmp_path / "cpu.csv"
    old, new = row(commit="aaaa", ratio_q50=4.0), row(commit="bbbb", ratio_q50=2.0, note="a, b")
    update(path, [old])
    assert update(path, [new]) == [old, new]
    again = replace(new, ratio_q50=None, rows=7)
    update(path, [again])
    assert read(path) == [old, again]
    assert [file.name for file in tmp_path.iterdir()] == ["cpu.csv"]


def test_rows_of_another_family_or_width_keep_their_place(tmp_path):
    path = tmp_path / "cpu.csv"
    rows = [row(), row(family="structured"), row(width=3)]
    for one in rows:
        update(path, [one])
    assert read(path) == rows
    cases = {case for case, _ in measured_before(path, rows[0].commit)}
    assert cases == {Case("maps", 4, 8), Case("structured", 4, 8), Case("maps", 4, 8, width=3)}
    assert measured_before(path, "another") == set()


def test_rows_of_an_older_file_are_read(tmp_path):
    path = tmp_path / "cpu.csv"
    update(path, [row()])
    table = [line.split(",") for line in path.read_text().splitlines()]
    newer = [table[0].index(name) for name in ("triton", "peers", "width", "clock", "peak_mib")]
    older = [[cell for i, cell in enumerate(line) if i not in newer] for line in table]
    path.write_text("\n".join(map(",".join, older)) + "\n")
    assert read(path) == [row(triton="", peers="")]


def test_of_every_table_the_last_commit_counts():
    old, new = row(commit="old"), row(commit="new")
    half = row(commit="old", dtype="bfloat16")
    assert newest([old, half, new]) == [new, half]
