"""Hardware, versions and commit of a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

import fenchel
from benchmarks.peers import PACKAGES
from fenchel.hardware import processor

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Environment:
    date: str
    commit: str
    dirty: bool
    hardware: str
    cores: int
    threads: int
    python: str
    torch: str
    numba: str
    triton: str
    fenchel: str
    peers: str
    device: str


def describe(device: str, commit: str | None = None) -> Environment:
    """The environment of this process; the commit is read from git unless it is given."""
    commit, dirty = _commit() if commit is None else (commit, False)
    return Environment(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=commit,
        dirty=dirty,
        hardware=torch.cuda.get_device_name(device) if device.startswith("cuda") else processor(),
        cores=os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        python=platform.python_version(),
        torch=torch.__version__,
        numba=_version("numba"),
        triton=_version("triton"),
        fenchel=fenchel.__version__,
        peers=", ".join(f"{name} {_version(name)}" for name in PACKAGES if _version(name)),
        device=device,
    )


def _version(package: str) -> str:
    """The version of a package, empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _commit() -> tuple[str, bool]:
    """The commit of the sources, and whether files other than the results differ from it."""
    head = _git("rev-parse", "--short=12", "HEAD")
    if head is None:
        return "none", True
    return head, bool(_git("status", "--porcelain", "--", ".", f":!{RESULTS.relative_to(ROOT)}"))


def _git(*arguments: str) -> str | None:
    """The output of a git command, None outside a repository."""
    try:
        result = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None
