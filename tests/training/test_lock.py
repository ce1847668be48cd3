"""One process at a time trains into a folder or changes a file, however the others end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from fenchel import FenchelError
from fenchel.training.lock import exclusive_access, training_lock

HOLD = """
import sys
from pathlib import Path
from fenchel.training import lock
path = Path(sys.argv[2])
with getattr(lock, sys.argv[1])(path):
    read = path.read_text() if path.is_file() else ""
    print("locked", flush=True)
    sys.stdin.readline()
    if path.is_file():
        path.write_text(read + "theirs")
"""


@contextmanager
def held(name: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a lock until its input is closed."""
    command = [sys.executable, "-c", HOLD, name, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_waits_for_the_file(tmp_path: Path):
    path = tmp_path / "metrics.json"
    path.write_text("first ")
    with held("exclusive_access", path) as process:
        assert process.stdin is not None
        Timer(0.2, process.stdin.close).start()
        with exclusive_access(path):
            path.write_text(path.read_text() + " ours")
    assert path.read_text() == "first theirs ours"


def test_a_second_process_cannot_train_into_the_folder(tmp_path: Path):
    match = r"only one process can train into .*run at a time: wait"
    with held("training_lock", tmp_path / "run"):
        with pytest.raises(FenchelError, match=match), training_lock(tmp_path / "run"):
            pass
        with exclusive_access(tmp_path / "run" / "metrics.json"), training_lock(tmp_path / "b"):
            pass


def test_a_process_that_is_killed_loses_its_locks(tmp_path: Path):
    path = tmp_path / "metrics.json"
    with held("training_lock", tmp_path) as training, held("exclusive_access", path) as writing:
        for process in (training, writing):
            process.kill()
            process.wait()
        with training_lock(tmp_path), exclusive_access(path):
            pass


@pytest.mark.parametrize("ends", [KeyboardInterrupt, ValueError, None])
def test_a_lock_is_released_however_its_block_ends(
    ends: type[BaseException] | None, tmp_path: Path
):
    try:
        with training_lock(tmp_path), exclusive_access(tmp_path / "metrics.json"):
            if ends is not None:
                raise ends
    except (KeyboardInterrupt, ValueError):
        pass
    with training_lock(tmp_path), exclusive_access(tmp_path / "metrics.json"):
        pass


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder that takes no files")
def test_a_folder_that_cannot_be_written_to_is_an_error_of_the_system():
    folder = Path("/sys/kernel")
    for lock in (training_lock(folder), exclusive_access(folder / "metrics.json")):
        with pytest.raises(OSError, match="/sys/kernel"), lock:
            pass
