"""The file of a table: lean rows, in the table's order, each name once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from fenchel import FenchelError
from fenchel.recipes.reproductions.rows import Finding, Row, stored, update
from fenchel.training import lock
from tests.mutations import mutations, text_of


def row(*figure, command="again") -> Row:
    return Row(Finding(*figure), command=command, commit="c0ffee", hardware="a machine")


def test_a_row_says_only_what_there_is_to_say(tmp_path):
    path = tmp_path / "paper" / "table" / "metrics.json"
    plain = row("speed", 2.5, None)
    full = row("bleu", 30.0, 26.0, (29.0, 31.0), "nrefs:1", False)
    update(path, [plain, full])
    first, second = json.loads(path.read_text(encoding="utf-8"))
    assert list(first) == ["name", "ours", "paper", "command", "commit", "hardware"]
    assert first["paper"] is None
    assert second["runs"] == [29.0, 31.0]
    assert (second["signature"], second["finished"]) == ("nrefs:1", False)
    assert stored(path)[0] == plain
    assert stored(path)[1].state() == json.loads(json.dumps(full.state()))


def test_every_mutation_of_a_table_is_read_or_refused(tmp_path):
    path, refused = tmp_path / "metrics.json", 0
    update(path, [row("bleu", 30.0, 26.0, (29.0, 31.0), "nrefs:1", False)])
    for _, document in mutations(json.loads(path.read_text())):
        path.write_text(text_of(document))
        try:
            stored(path)
        except FenchelError:
            refused += 1
    assert refused > 0


def test_rows_are_replaced_by_name_and_ordered(tmp_path):
    path = tmp_path / "metrics.json"
    update(path, [row("c", 1.0, None), row("other", 2.0, None), row("a", 3.0, None)], "abc")
    update(path, [row("b", 4.0, None), row("c", 5.0, None, command="new")], "abc")
    found = stored(path)
    assert [each.finding.name for each in found] == ["a", "b", "c", "other"]
    assert (found[2].finding.ours, found[2].command) == (5.0, "new")
    assert stored(tmp_path / "nothing.json") == []


@pytest.mark.parametrize("locks", [True, False])
def test_rows_that_come_at_once_are_all_kept(locks, tmp_path, monkeypatch):
    """Threads stand for processes: each opens the folder for itself."""
    if not locks:
        monkeypatch.setattr(lock, "_locked", lambda folder: None)
    path = tmp_path / "metrics.json"
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(update, path, [row(str(k), 1.0, None)]) for k in range(24)]:
            each.result()
    assert {each.finding.name for each in stored(path)} == {str(k) for k in range(24)}
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked")
def test_another_process_is_waited_for(tmp_path):
    path = tmp_path / "metrics.json"
    update(path, [row("first", 1.0, None)])
    slow = (
        "import fcntl, json, os, sys, time\n"
        "fcntl.flock(os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY), fcntl.LOCK_EX)\n"
        "rows = json.load(open(sys.argv[1]))\n"
        "print('read', flush=True)\n"
        "time.sleep(0.3)\n"
        "json.dump([*rows, {**rows[0], 'name': 'theirs'}], open(sys.argv[1], 'w'))\n"
    )
    command = [sys.executable, "-c", slow, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"read\n"
        update(path, [row("ours", 2.0, None)])
    assert [each.finding.name for each in stored(path)] == ["first", "theirs", "ours"]


def test_a_mark_that_was_left_behind_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_locked", lambda folder: None)
    mark = tmp_path / ".metrics.json.lock"
    mark.touch()
    os.utime(mark, (0, 0))
    update(tmp_path / "metrics.json", [row("a", 1.0, None)])
    assert not mark.exists()
