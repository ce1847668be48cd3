"""Result files, `results/PAPER/TABLE/metrics.json`: measurements and how they were made."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

import fenchel
from fenchel.hardware import processor
from fenchel.recipes.reproductions.config import ReproductionConfig
from fenchel.recipes.reproductions.tables import Experiment, PaperTable
from fenchel.settings import from_json
from fenchel.training.files import load_json, save_json
from fenchel.training.lock import exclusive_access

PACKAGE = Path(fenchel.__file__).parent
OPTIONAL: dict[str, Any] = {"runs": [], "signature": "", "finished": True}


@dataclass(frozen=True)
class Measurement:
    """A figure of a table.

    Args:
        name: The name of its row.
        ours: The mean over seeds.
        paper: The paper's figure, if it reports one.
        runs: The figure of each seed.
        signature: The exact definition of the metric, for BLEU and chrF.
        finished: Whether training was completed.
    """

    name: str
    ours: float
    paper: float | None
    runs: list[float] = field(default_factory=list)
    signature: str = ""
    finished: bool = True


@dataclass(frozen=True, kw_only=True)
class Row(Measurement):
    """A measurement with its provenance."""

    command: str
    commit: str
    hardware: str

    def state(self) -> dict[str, Any]:
        """The row as JSON, without optional fields that have their default."""
        state = asdict(self)
        return {name: state[name] for name in state if state[name] != OPTIONAL.get(name, ...)}


@dataclass(frozen=True)
class Results:
    """The result files of tables.

    Args:
        folder: The folder that contains them.
        commands: The command that makes each table, by the table's name.
        commit: The commit of the sources.
        quick: Whether figures come from tiny models, which are written to files of their own.
    """

    folder: Path
    commands: Mapping[str, str]
    commit: str
    quick: bool = False

    def path(self, table: PaperTable) -> Path:
        """The file of a table."""
        return self.folder / table.name / ("quick.json" if self.quick else "metrics.json")

    def write(self, table: PaperTable, measurements: Iterable[Measurement]) -> None:
        """Add measurements to the file of a table; rows of the same name are replaced."""
        command, device = self.commands[table.name], hardware()
        rows = [
            Row(**asdict(each), command=command, commit=self.commit, hardware=device)
            for each in measurements
        ]
        update_rows(self.path(table), rows, table.row_names)


def read_rows(path: Path) -> list[Row]:
    """The rows of a result file; none if it does not exist."""
    return from_json(list[Row], load_json(path), str(path)) if path.exists() else []


def update_rows(path: Path, rows: Sequence[Row], order: Sequence[str] = ()) -> None:
    """Add rows to a result file; rows of the same name are replaced.

    The names in `order` come first, in that order. Several processes may update a file concurrently.
    """
    with exclusive_access(path):
        known = {row.name: row for row in (*read_rows(path), *rows)}
        names = sorted(known, key=lambda name: order.index(name) if name in order else len(order))
        save_json(path, [known[name].state() for name in names])


def reproduction_command(
    table: PaperTable, experiments: Sequence[Experiment], config: ReproductionConfig
) -> str:
    r"""The command that reproduces these experiments of a table.

    The folders of the data and the runs are left out, since they do not affect the results.

    >>> from fenchel.recipes.reproductions import paper_table
    >>> table = paper_table("2019-peters/table2")
    >>> reproduction_command(table, table.experiments, ReproductionConfig(seeds=3))
    'fenchel reproduce 2019-peters/table2 --seeds 3'
    >>> longer = ReproductionConfig(overrides=("epochs=5",))
    >>> reproduction_command(table, table.experiments[1:], longer)
    "fenchel reproduce 2019-peters/table2 --only '^(1\\.5-entmax|sparsemax)$' --set epochs=5"
    """
    parts = ["fenchel", "reproduce", table.name]
    if len(experiments) < len(table.experiments):
        names = "|".join(re.sub(r"[][\\.^$*+?{}|()]", r"\\\g<0>", e.name) for e in experiments)
        parts += ["--only", f"^({names})$" if len(experiments) > 1 else f"^{names}$"]
    parts += ["--seeds", str(config.seeds)] if config.seeds > 1 else []
    for override in config.overrides:
        parts += ["--set", override]
    return shlex.join([*parts, *(["--quick"] if config.quick else [])])


@cache
def commit(package: Path = PACKAGE) -> str:
    """The git commit of the package, or its version outside a repository.

    Uncommitted changes add "-edited-" and the digest of the sources. The environment variable
    FENCHEL_COMMIT replaces the result.
    """
    override = os.environ.get("FENCHEL_COMMIT")
    if override:
        return override
    if (package.parents[1] / ".git").exists():
        name = _git(package, "rev-parse", "--short=12", "HEAD")
        if name:
            changed = _git(package, "status", "--porcelain", "--", ".")
            return f"{name}-edited-{source_digest(package)}" if changed else name
    return f"fenchel {fenchel.__version__}"


@cache
def source_digest(package: Path = PACKAGE) -> str:
    """A digest of the names and contents of all Python files of the package."""
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted(package.rglob("*.py")):
        for part in (path.relative_to(package).as_posix().encode(), path.read_bytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def hardware() -> str:
    """The device and the version of PyTorch."""
    if torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    else:
        threads = torch.get_num_threads()
        device = f"{processor()}, {threads} {'thread' if threads == 1 else 'threads'}"
    return f"{device}, torch {torch.__version__}"


def _git(folder: Path, *arguments: str) -> str:
    """The output of a git command, "" if it fails or git is not installed."""
    try:
        command = ["git", "-C", str(folder), *arguments]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return completed.stdout.strip() if completed.returncode == 0 else ""
