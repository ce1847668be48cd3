"""The file of a table: lean rows, in the table's order, each name once."""

from __future__ import annotations

import json

from fenchel.recipes.reproductions.rows import Finding, Row, stored, update


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


def test_rows_are_replaced_by_name_and_ordered(tmp_path):
    path = tmp_path / "metrics.json"
    update(path, [row("c", 1.0, None), row("other", 2.0, None), row("a", 3.0, None)], "abc")
    update(path, [row("b", 4.0, None), row("c", 5.0, None, command="new")], "abc")
    found = stored(path)
    assert [each.finding.name for each in found] == ["a", "b", "c", "other"]
    assert (found[2].finding.ours, found[2].command) == (5.0, "new")
    assert stored(tmp_path / "nothing.json") == []
