"""Result files: rows in the order of the table, each name once, with their command and commit."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fenchel import FenchelError
from fenchel.recipes.reproductions import TABLES
from fenchel.recipes.reproductions.config import ReproductionConfig
from fenchel.recipes.reproductions.results import (
    Row,
    commit,
    read_rows,
    reproduction_command,
    source_digest,
    update_rows,
)
from tests.mutations import mutations, text_of


def row(*figure, command="again") -> Row:
    return Row(*figure, command=command, commit="c0ffee", hardware="a machine")


def test_a_row_says_only_what_there_is_to_say(tmp_path):
    path = tmp_path / "paper" / "table" / "metrics.json"
    plain = row("speed", 2.5, None)
    full = row("bleu", 30.0, 26.0, [29.0, 31.0], "nrefs:1", False)
    update_rows(path, [plain, full])
    first, second = json.loads(path.read_text(encoding="utf-8"))
    assert list(first) == ["name", "ours", "paper", "command", "commit", "hardware"]
    assert first["paper"] is None
    assert second["runs"] == [29.0, 31.0]
    assert (second["signature"], second["finished"]) == ("nrefs:1", False)
    assert read_rows(path)[0] == plain
    assert read_rows(path)[1].state() == json.loads(json.dumps(full.state()))


def test_every_mutation_of_a_table_is_read_or_refused(tmp_path):
    path, refused = tmp_path / "metrics.json", 0
    update_rows(path, [row("bleu", 30.0, 26.0, [29.0, 31.0], "nrefs:1", False)])
    for _, document in mutations(json.loads(path.read_text())):
        path.write_text(text_of(document))
        try:
            read_rows(path)
        except FenchelError:
            refused += 1
    assert refused > 0


def test_rows_are_replaced_by_name_and_ordered(tmp_path):
    path = tmp_path / "metrics.json"
    update_rows(path, [row("c", 1.0, None), row("other", 2.0, None), row("a", 3.0, None)], "abc")
    update_rows(path, [row("b", 4.0, None), row("c", 5.0, None, command="new")], "abc")
    found = read_rows(path)
    assert [each.name for each in found] == ["a", "b", "c", "other"]
    assert (found[2].ours, found[2].command) == (5.0, "new")
    assert read_rows(tmp_path / "nothing.json") == []


def test_rows_that_come_at_once_are_all_kept(tmp_path):
    """Threads stand for processes: each opens the lock file for itself."""
    path = tmp_path / "metrics.json"
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(update_rows, path, [row(str(k), 1.0, None)]) for k in range(24)]:
            each.result()
    assert {each.name for each in read_rows(path)} == {str(k) for k in range(24)}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("which", [slice(0, 1), slice(1, 3)])
def test_the_pattern_names_the_chosen_experiments_of_the_table(name: str, which: slice):
    table = TABLES[name]
    chosen = table.experiments[which]
    config = ReproductionConfig(seeds=2, overrides=("epochs=3",), quick=True)
    words = shlex.split(reproduction_command(table, chosen, config))
    assert words[:3] == ["fenchel", "reproduce", name]
    assert words[-5:] == ["--seeds", "2", "--set", "epochs=3", "--quick"]
    pattern = re.compile(words[words.index("--only") + 1])
    names = {each.name for each in chosen}  # two models may stand for two measures of one name
    expected = [each for each in table.experiments if each.name in names]
    assert [each for each in table.experiments if pattern.search(each.name)] == expected


def test_a_whole_table_needs_no_pattern():
    for name, table in TABLES.items():
        whole = reproduction_command(table, table.experiments, ReproductionConfig())
        assert whole == f"fenchel reproduce {name}"


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a person", "-c", "user.email=person@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in a repository of its own, committed."""
    folder = tmp_path / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text("ONE = 1\n")
    _git(tmp_path, "init")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-m", "first")
    return folder


def commit_of(package: Path) -> str:
    commit.cache_clear()
    source_digest.cache_clear()
    return commit(package)


def test_an_edited_package_is_marked(package: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FENCHEL_COMMIT", raising=False)
    plain = commit_of(package)
    assert len(plain) == 12
    (package.parents[1] / "notes.md").write_text("no source\n")
    assert commit_of(package) == plain
    (package / "one.py").write_text("ONE = 2\n")
    edited = commit_of(package)
    assert edited.startswith(f"{plain}-edited-")
    (package / "one.py").write_text("ONE = 3\n")
    assert commit_of(package) not in (plain, edited)
    (package / "one.py").write_text("ONE = 1\n")
    assert commit_of(package) == plain
    (package / "two.py").write_text("TWO = 2\n")
    assert commit_of(package).startswith(f"{plain}-edited-")
    monkeypatch.setenv("FENCHEL_COMMIT", "given")
    assert commit_of(package) == "given"
