"""What the benchmarks say while they run."""

from __future__ import annotations

import sys

from benchmarks.progress import steps


def test_what_is_done_is_said_in_lines_where_there_is_no_terminal(capsys):
    assert list(steps("counting", [1, 2], 2, lambda n: f"at {n}")) == [1, 2]
    assert capsys.readouterr().out.splitlines() == [
        "counting 1/2: at 1",
        "counting 2/2: at 2",
        "counting, 2 done: 0 s",
    ]
    assert list(steps("nothing", [], 0)) == []
    assert capsys.readouterr().out == ""


def test_what_is_done_is_a_bar_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert list(steps("counting", [1, 2], 2)) == [1, 2]
    assert "2/2" in capsys.readouterr().out
