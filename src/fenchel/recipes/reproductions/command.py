"""The command that makes rows of a table again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from fenchel.recipes.reproductions.table import Experiment, PaperTable


def command(
    table: PaperTable,
    experiments: Sequence[Experiment],
    *,
    seeds: int = 1,
    changes: Sequence[str] = (),
    quick: bool = False,
) -> str:
    r"""The command for some experiments of one table, whatever else was made in the same call.

    Where data and models lie does not matter to the rows.

    >>> from fenchel.recipes.reproductions import paper_table
    >>> table = paper_table("2019-peters/table2")
    >>> command(table, table.experiments, seeds=3)
    'fenchel reproduce 2019-peters/table2 --seeds 3'
    >>> command(table, table.experiments[1:], changes=["epochs=5"])
    "fenchel reproduce 2019-peters/table2 --only '^(1\\.5-entmax|sparsemax)$' --set epochs=5"
    """
    parts = ["fenchel", "reproduce", table.name]
    if len(experiments) < len(table.experiments):
        parts += ["--only", only(experiments)]
    parts += ["--seeds", str(seeds)] if seeds > 1 else []
    for change in changes:
        parts += ["--set", change]
    return shlex.join([*parts, *(["--quick"] if quick else [])])


def only(experiments: Sequence[Experiment]) -> str:
    """A regular expression of the names of these experiments and no others."""
    names = [re.sub(r"[][\\.^$*+?{}|()]", r"\\\g<0>", each.name) for each in experiments]
    return f"^({'|'.join(names)})$" if len(names) > 1 else f"^{names[0]}$"
