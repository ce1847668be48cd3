"""What made a figure: the sources of the package, and the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import torch

import fenchel

PACKAGE = Path(fenchel.__file__).parent


@cache
def commit(package: Path = PACKAGE) -> str:
    """The commit of the checkout that runs, or the version of the package; FENCHEL_COMMIT overrules.

    Where the package was edited since that commit, "-edited-" and a digest of its sources follow.
    """
    given = os.environ.get("FENCHEL_COMMIT")
    if given:
        return given
    repository = package.parents[1]
    if (repository / ".git").exists():
        name = _git(package, "rev-parse", "--short=12", "HEAD")
        if name:
            changed = _git(package, "status", "--porcelain", "--", ".")
            return f"{name}-edited-{sources(package)}" if changed else name
    return f"fenchel {fenchel.__version__}"


@cache
def sources(package: Path = PACKAGE) -> str:
    """The same for the same names and contents of all Python files of the package."""
    found = hashlib.blake2b(digest_size=4)
    for path in sorted(package.rglob("*.py")):
        for part in (path.relative_to(package).as_posix().encode(), path.read_bytes()):
            found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()


def hardware() -> str:
    """The device and the version of torch."""
    if torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    else:
        device = f"{platform.machine()}, {torch.get_num_threads()} threads"
    return f"{device}, torch {torch.__version__}"


def _git(folder: Path, *arguments: str) -> str:
    """What git says about a folder; nothing if it fails or is not there."""
    try:
        command = ["git", "-C", str(folder), *arguments]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
