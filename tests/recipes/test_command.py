"""The command of a row names what its own table needs, and nothing else."""

from __future__ import annotations

import re
import shlex

import pytest

from fenchel.recipes.reproductions import TABLES
from fenchel.recipes.reproductions.command import command


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("which", [slice(0, 1), slice(1, 3)])
def test_the_pattern_names_the_chosen_experiments_of_the_table(name: str, which: slice):
    table = TABLES[name]
    chosen = table.experiments[which]
    words = shlex.split(command(table, chosen, seeds=2, changes=["epochs=3"], quick=True))
    assert words[:3] == ["fenchel", "reproduce", name]
    assert words[-5:] == ["--seeds", "2", "--set", "epochs=3", "--quick"]
    pattern = re.compile(words[words.index("--only") + 1])
    assert [each for each in table.experiments if pattern.search(each.name)] == list(chosen)


def test_a_whole_table_needs_no_pattern():
    for name, table in TABLES.items():
        assert command(table, table.experiments) == f"fenchel reproduce {name}"
