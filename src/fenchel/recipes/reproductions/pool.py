"""Calls side by side, each in a process of its own.

What goes wrong in one call, even a crash of its process, does not touch the others; no process
outlives the pool, nor the process that made it.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

import torch

from fenchel.errors import FenchelError

K = TypeVar("K")
LEAVING = 20.0  # seconds that a process has for going after its result has come


@dataclass(frozen=True)
class Failure:
    """What a call has come to instead of a result."""

    message: str

    @property
    def reason(self) -> str:
        """The last line, which says most."""
        return self.message.strip().rpartition("\n")[2]


class Pool(Generic[K]):
    """At most so many calls at a time, in the order in which they were added.

    Calls and their results travel between processes, so they must be picklable. A pool for one call
    at a time makes them in this process.

    >>> from functools import partial
    >>> with Pool(1) as pool:
    ...     pool.add("root", partial(pow, 2, 0.5))
    ...     for name, outcome in pool.outcomes():
    ...         print(name, round(outcome, 3))
    root 1.414
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._waiting: deque[tuple[K, Callable[[], Any]]] = deque()
        self._running: dict[Any, tuple[K, BaseProcess]] = {}  # by the end of a pipe

    def __enter__(self) -> Pool[K]:
        return self

    def __exit__(self, *error: object) -> None:
        """Whatever still runs is killed."""
        for _, process in self._running.values():
            process.kill()
            process.join()
        self._running.clear()

    def add(self, key: K, call: Callable[[], Any]) -> None:
        """One more call; it may be added while outcomes come."""
        self._waiting.append((key, call))

    def outcomes(self) -> Iterator[tuple[K, Any]]:
        """Every call's key with its result or a `Failure`, as they come, until nothing is left."""
        while self._waiting or self._running:
            if self.jobs == 1:
                key, call = self._waiting.popleft()
                yield key, attempt(call)
                continue
            while self._waiting and len(self._running) < self.jobs:
                self._start(*self._waiting.popleft())
            ready = wait(list(self._running))
            for connection in [each for each in self._running if each in ready]:
                yield self._finish(connection)

    def _start(self, key: K, call: Callable[[], Any]) -> None:
        context = get_context("spawn")
        here, there = context.Pipe(duplex=False)
        threads = max(1, torch.get_num_threads() // self.jobs)
        process = context.Process(target=_work, args=(there, call, threads), daemon=True)
        with _interruptions_ignored():
            process.start()
        there.close()
        self._running[here] = (key, process)

    def _finish(self, connection: Any) -> tuple[K, Any]:
        key, process = self._running[connection]
        try:
            outcome = connection.recv()
        except (EOFError, OSError):
            process.join()
            outcome = Failure(f"its process was ended: exit code {process.exitcode}")
        process.join(LEAVING)
        process.kill()
        connection.close()
        del self._running[connection]
        return key, outcome


def attempt(call: Callable[[], Any]) -> Any:
    """The result of a call, or its failure."""
    try:
        return call()
    except FenchelError as error:
        return Failure(str(error))
    except Exception:
        return Failure(traceback.format_exc())


@contextmanager
def _interruptions_ignored() -> Iterator[None]:
    """A process begun meanwhile ignores them for life: they are for its parent, which ends it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(connection: Connection, call: Callable[[], Any], threads: int) -> None:
    """The life of a process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    connection.send(attempt(call))
    connection.close()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
