"""`python -m benchmarks.against COMMIT [--only PATTERN]`: the working tree against an earlier commit.

Two processes, one per version, take turns on every operation of the library, so that whatever slows
the machine for a while slows both. Where memory happens to lie still favours one process by up to
5 %, so this is repeated with new processes. Each line ends with new time / old time: the median, the
least and the largest of the pairs of processes.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.progress import steps

Key = tuple[str, str]
ROOT = Path(__file__).parent.parent
TURN_SECONDS = 0.06  # short calls are repeated for this long
PAUSE = 0.02  # lets the threads of the other process fall asleep
# Without these, whether glibc returns a large tensor to the system differs from process to process.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**40)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against")
    parser.add_argument("commit")
    parser.add_argument("--only", default="", help="regular expression of operations or families")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each process")
    parser.add_argument("--cases", action="store_true", help=argparse.SUPPRESS)  # a worker process
    options = parser.parse_args()
    if options.cases:
        _serve(options.only)
        return
    found: dict[Key, list[float]] = defaultdict(list)
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as folder:
        _check_out(options.commit, Path(folder))
        pairs = range(options.pairs)
        for _ in steps("pairs of processes", pairs, len(pairs), lambda n: f"pair {n + 1}"):
            with (
                worker(
                    Path(folder), __file__, "worker", "--cases", f"--only={options.only}"
                ) as old,
                worker(ROOT, __file__, "worker", "--cases", f"--only={options.only}") as new,
            ):
                both = set(map(tuple, old(None)))
                for key in [key for key in map(tuple, new(None)) if key in both]:
                    found[key].append(compare(old, new, key, options.rounds))
    for (case, name), ratios in sorted(found.items(), key=lambda item: median(item[1])):
        spread = f"{median(ratios):6.3f}  {min(ratios):6.3f} to {max(ratios):6.3f}"
        print(f"{case:58} {name:34} {spread}")


def compare(old: Any, new: Any, key: tuple[Any, ...], rounds: int) -> float:
    """New time / old time of two workers that take turns, the median over the turns."""
    calls = max(1, min(10_000, int(TURN_SECONDS / max(old([*key, 1]), new([*key, 1]), 1e-6))))
    ratios = []
    for turn in range(rounds):
        first, second = (old, new) if turn % 2 else (new, old)
        times = {id(worker): worker([*key, calls]) for worker in (first, second)}
        ratios.append(times[id(new)] / times[id(old)])
    return median(ratios)


@contextmanager
def worker(root: Path, script: str, *arguments: str) -> Iterator[Callable[[Any], Any]]:
    """A process of `script` that measures the version in a folder; calling it sends a request."""
    path = os.pathsep.join([str(root / "src"), str(root)])
    command = [sys.executable, "-P", script, *arguments]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **KEEP_MEMORY, "PYTHONPATH": path},
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def ask(request: Any) -> Any:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            return json.loads(stdout.readline())

        yield ask
        stdin.close()


def _serve(pattern: str) -> None:
    """Answer requests: null lists the operations, [case, name, n] is the mean time of n calls."""
    from benchmarks.inputs import make_inputs
    from benchmarks.peers import OPERATIONS
    from benchmarks.problems import cpu_cases

    found = {
        (str(case) + (" call" if case.clock == "host" else ""), operation.name): (case, operation)
        for case in cpu_cases()
        for operation in OPERATIONS.values()
        if operation.fits(case) and not operation.optional
        if operation.name != operation.baseline
        if any(re.search(pattern, name) for name in (operation.name, operation.family))
    }
    inputs: tuple[Any, Any] = (None, None)
    built: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request is None:
            print(json.dumps(list(found)), flush=True)
            continue
        case_name, name, calls = request
        case, operation = found[case_name, name]
        if inputs[0] != case_name:
            inputs = case_name, make_inputs(case)
            built.clear()
        if name not in built:
            built[name] = operation.build(inputs[1], backward=case.backward)
            built[name]()  # compiles
        time.sleep(PAUSE)
        start = time.perf_counter()
        for _ in range(calls):
            built[name]()
        print(json.dumps((time.perf_counter() - start) / calls), flush=True)


def _check_out(commit: str, folder: Path) -> None:
    """Write the files of a commit into a folder."""
    command = ["git", "archive", commit]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise SystemExit(f"COMMIT must be known to git, got {commit}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")


if __name__ == "__main__":
    main()
