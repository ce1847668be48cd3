"""The file of a reproduced table: ours beside the paper's, and how ours was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fenchel.schema import from_json
from fenchel.training.files import load_json, save_json
from fenchel.training.lock import alone_with


class Finding(NamedTuple):
    """One figure.

    `ours` is the mean of `runs`, those of the seeds; `paper` is None where the paper gives none;
    `signature` says exactly how BLEU was computed; `finished` is false if time ran out.
    """

    name: str
    ours: float
    paper: float | None
    runs: Sequence[float] = ()
    signature: str = ""
    finished: bool = True

    def state(self) -> dict[str, Any]:
        """As JSON can hold it, without what says nothing."""
        silent = {"runs": (), "signature": "", "finished": True}
        state = self._asdict()
        return {name: state[name] for name in state if state[name] != silent.get(name, ...)}


@dataclass(frozen=True)
class Row:
    """A figure in the file, and how it was made."""

    finding: Finding
    command: str
    commit: str
    hardware: str

    def state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        made = {"command": self.command, "commit": self.commit, "hardware": self.hardware}
        return self.finding.state() | made


@dataclass(frozen=True)
class _StoredRow:
    """What `Row.state` returns."""

    name: str
    ours: float
    paper: float | None
    command: str
    commit: str
    hardware: str
    runs: list[float] = field(default_factory=list)
    signature: str = ""
    finished: bool = True

    def row(self) -> Row:
        values = (self.name, self.ours, self.paper, self.runs or (), self.signature, self.finished)
        return Row(Finding(*values), self.command, self.commit, self.hardware)


def stored(path: Path) -> list[Row]:
    """The rows of a table's file; none if it is not there."""
    if not path.exists():
        return []
    return [row.row() for row in from_json(list[_StoredRow], load_json(path), str(path))]


def update(path: Path, rows: Sequence[Row], order: Sequence[str] = ()) -> None:
    """Put rows into a table's file, over those of the same name.

    Those named in `order` come first, in that order. Several processes may do so at once.
    """
    with alone_with(path):
        known = {row.finding.name: row for row in (*stored(path), *rows)}
        names = sorted(known, key=lambda name: order.index(name) if name in order else len(order))
        save_json(path, [known[name].state() for name in names])
