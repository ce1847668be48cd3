"""One process at a time, so that what is read, changed and written again is not lost."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fenchel.errors import rule

if sys.platform != "win32":
    import fcntl

ABANDONED = 60.0  # seconds after which a mark is of a process that died
PAUSE = 0.02


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Wait for all others who are in here with a file of the same folder, and keep others waiting.

    The folder is locked, and the lock goes with the process, however that ends. Where the system or
    the file system cannot lock a folder, a mark beside the file stands for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = _locked(path.parent)
    mark = _marked(path) if folder is None else None
    try:
        yield
    finally:
        if folder is not None:
            os.close(folder)
        if mark is not None:
            mark.unlink(missing_ok=True)


@contextmanager
def sole_trainer(folder: Path) -> Iterator[None]:
    """Refuse to be in here with a folder while another is, which may take days.

    Where the system or the file system cannot lock a folder, nobody is refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        opened = _locked(folder, wait=False)
    except BlockingIOError as taken:
        statement = f"one process trains into {folder.parent} at a time"
        expected, got = "the other one to end, or another folder", "another one at work"
        raise rule(statement, expected=expected, got=got) from taken
    try:
        yield
    finally:
        if opened is not None:
            os.close(opened)


def _locked(folder: Path, *, wait: bool = True) -> int | None:
    """What holds the lock until it is closed; None where there are no such locks.

    A lock that another holds is waited for, or else a `BlockingIOError`.
    """
    if sys.platform == "win32":
        return None
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise
    except OSError:
        os.close(opened)
        return None
    return opened


def _marked(path: Path) -> Path:
    """A file that only one process can make."""
    mark = path.with_name(f".{path.name}.lock")
    while True:
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            with suppress(FileNotFoundError):
                if time.time() - mark.stat().st_mtime > ABANDONED:
                    mark.unlink()
                    continue
            time.sleep(PAUSE)
        else:
            return mark
