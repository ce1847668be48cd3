"""Locks on the files of a run, between processes; the system releases them when a process ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from fenchel.errors import FenchelError


@contextmanager
def exclusive_access(path: Path) -> Iterator[None]:
    """Wait for other processes that use the file `path`, and keep others out.

    The lock file `.NAME.lock` stays beside the file: removing it would let two processes in.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        yield


@contextmanager
def training_lock(run_dir: Path) -> Iterator[None]:
    """Raise if another process trains into the folder `run_dir`, and keep others out."""
    run_dir.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(run_dir / ".training.lock").acquire(blocking=False)
    except Timeout as taken:
        raise FenchelError(
            f"only one process can train into {run_dir} at a time: "
            "wait until the other one ends, or train into another folder"
        ) from taken
    with lock:
        yield
