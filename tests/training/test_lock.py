"""One process at a time trains into a folder or changes a file, however the others end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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

DIE_WITH_A_FILE = """
import os, sys
from filelock import SoftFileLock
lock = SoftFileLock(sys.argv[1])
lock.acquire()
os._exit(1)
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


@pytest.mark.filterwarnings("ignore:flock not supported on this filesystem")
def test_where_the_system_cannot_lock_files_stand_for_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Threads stand for processes; the file of a process that was killed is no obstacle."""

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", refuse)
    path, left_behind = tmp_path / "metrics.json", tmp_path / ".metrics.json.lock"
    path.write_text("0")
    subprocess.run([sys.executable, "-c", DIE_WITH_A_FILE, str(left_behind)])
    assert left_behind.exists()

    def count(_: int) -> None:
        with exclusive_access(path):
            before = int(path.read_text())
            time.sleep(0.01)
            path.write_text(str(before + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(8)))
    assert path.read_text() == "8"
    match = "only one process can train"
    with training_lock(tmp_path), pytest.raises(FenchelError, match=match), training_lock(tmp_path):
        pass


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder that takes no files")
def test_a_folder_that_cannot_be_written_to_is_an_error_of_the_system():
    folder = Path("/sys/kernel")
    for lock in (training_lock(folder), exclusive_access(folder / "metrics.json")):
        with pytest.raises(OSError, match="/sys/kernel"), lock:
            pass
