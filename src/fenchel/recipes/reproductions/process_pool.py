"""Calls that run in parallel, each in a process of its own.

A failure of one call, even a crash of its process, does not affect the others. No process outlives the
pool or the process that created it.
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
EXIT_TIMEOUT = 20.0  # seconds that a process may take to exit after it has sent its result


@dataclass(frozen=True)
class Failure:
    """The error or the traceback of a failed call."""

    message: str

    @property
    def reason(self) -> str:
        """The last line of the message."""
        return self.message.strip().rpartition("\n")[2]


class ProcessPool(Generic[K]):
    """Runs up to `processes` calls at a time, in the order in which they were added.

    Calls and their results must be picklable. A pool of one process runs them in this process.

    >>> from functools import partial
    >>> with ProcessPool(1) as pool:
    ...     pool.add("root", partial(pow, 2, 0.5))
    ...     for name, outcome in pool.outcomes():
    ...         print(name, round(outcome, 3))
    root 1.414
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._waiting: deque[tuple[K, Callable[[], Any]]] = deque()
        self._running: dict[Any, tuple[K, BaseProcess]] = {}  # by the receiving end of a pipe

    def __enter__(self) -> ProcessPool[K]:
        return self

    def __exit__(self, *error: object) -> None:
        """Kill the processes that are still running."""
        for _, process in self._running.values():
            process.kill()
            process.join()
        self._running.clear()

    def add(self, key: K, call: Callable[[], Any]) -> None:
        """Add a call, also while outcomes are being iterated."""
        self._waiting.append((key, call))

    def outcomes(self) -> Iterator[tuple[K, Any]]:
        """Yield the key of each call with its result or a `Failure`, in order of completion."""
        while self._waiting or self._running:
            if self.processes == 1:
                key, call = self._waiting.popleft()
                yield key, attempt(call)
                continue
            while self._waiting and len(self._running) < self.processes:
                self._start(*self._waiting.popleft())
            ready = wait(list(self._running))
            for receiver in [each for each in self._running if each in ready]:
                yield self._finish(receiver)

    def _start(self, key: K, call: Callable[[], Any]) -> None:
        context = get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        threads = max(1, torch.get_num_threads() // self.processes)
        process = context.Process(target=_work, args=(sender, call, threads), daemon=True)
        with _interrupts_ignored():
            process.start()
        sender.close()
        self._running[receiver] = (key, process)

    def _finish(self, receiver: Any) -> tuple[K, Any]:
        key, process = self._running[receiver]
        try:
            outcome = receiver.recv()
        except (EOFError, OSError):
            process.join()
            outcome = Failure(f"the process exited with code {process.exitcode} and no result")
        process.join(EXIT_TIMEOUT)
        process.kill()
        receiver.close()
        del self._running[receiver]
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
def _interrupts_ignored() -> Iterator[None]:
    """Processes started here ignore SIGINT: their parent receives it and kills them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(sender: Connection, call: Callable[[], Any], threads: int) -> None:
    """The main function of a process."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    sender.send(attempt(call))
    sender.close()


def _exit_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
