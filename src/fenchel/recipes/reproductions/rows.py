"""The file of a reproduced table: ours beside the paper's, and how ours was made."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

import fenchel
from fenchel.training.files import load_json, save_json


@dataclass(frozen=True)
class Row:
    """One figure; `paper` is None where the paper gives none."""

    name: str
    ours: float
    paper: float | None
    command: str
    commit: str
    hardware: str


def update(path: Path, rows: Sequence[Row]) -> list[Row]:
    """Put rows into a table's file, over those of the same name; return all of its rows."""
    stored = load_json(path) if path.exists() else []
    known = {row["name"]: row for row in stored}
    known |= {row.name: asdict(row) for row in rows}
    save_json(path, list(known.values()))
    return [Row(**row) for row in known.values()]


def commit() -> str:
    """The commit of the checkout that runs, or the version of the package; FENCHEL_COMMIT overrules."""
    given = os.environ.get("FENCHEL_COMMIT")
    if given:
        return given
    repository = Path(fenchel.__file__).parents[2]
    if (repository / ".git").exists():
        command = ["git", "-C", str(repository), "rev-parse", "--short=12", "HEAD"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    return f"fenchel {fenchel.__version__}"


def hardware() -> str:
    """The device and the version of torch."""
    if torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    else:
        device = f"{platform.machine()}, {torch.get_num_threads()} threads"
    return f"{device}, torch {torch.__version__}"
