"""`python -m benchmarks [--quick] [--only PATTERN] [--resume] [--device cpu|cuda] [--base COMMIT]`.

Every case is in the CSV file as soon as it is measured; `--resume` continues an interrupted run,
and runs with different patterns write to the same file.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import torch

from benchmarks.compilation import compile_ahead, processes, tasks_of
from benchmarks.environment import RESULTS, Environment, describe
from benchmarks.peers import OPERATIONS
from benchmarks.problems import ELEMENTS, Case, cpu_cases, gpu_cases
from benchmarks.progress import steps
from benchmarks.registry import Operation
from benchmarks.report import markdown
from benchmarks.rows import Row, make_rows, measured_before, newest, read, update
from benchmarks.runner import Effort, measure_case
from benchmarks.timing import timer_for
from fenchel.errors import FenchelError

EFFORT = {
    ("cpu", False): Effort(),
    ("cpu", True): Effort(rounds=8, seconds=0.2, slowest_call=0.2, case_seconds=4),
    ("cuda", False): Effort(rounds=20, seconds=0.3, slowest_call=0.5, case_seconds=6),
    ("cuda", True): Effort(rounds=8, seconds=0.1, slowest_call=0.1, case_seconds=2),
}
NAMES = {"cpu": "cpu", "cuda": "gpu"}
DTYPES = {"cpu": ["float32"], "cuda": ["float32", "bfloat16"]}
QUICK_SHARE = 16

Problem = tuple[Case, list[Operation]]


def check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise FenchelError(
            f"--only must be a regular expression, got {pattern!r} ({error})"
        ) from error


def matches(pattern: str, operation: str, family: str) -> bool:
    """Whether the name or the family of an operation matches `--only`."""
    return any(re.search(pattern, name) for name in (operation, family))


def select(pattern: str, case: Case) -> list[Operation]:
    """The operations that match the pattern, by name or family, and their baselines."""
    able = [operation for operation in OPERATIONS.values() if operation.fits(case)]
    chosen = [operation for operation in able if matches(pattern, operation.name, operation.family)]
    baselines = {operation.baseline for operation in chosen}
    return [operation for operation in able if operation in chosen or operation.name in baselines]


def problems_of(options: argparse.Namespace) -> list[Problem]:
    dtypes = [getattr(torch, name) for name in options.dtype or DTYPES[options.device]]
    if options.device == "cuda":
        cases = gpu_cases(dtypes, QUICK_SHARE if options.quick else 1)
    else:
        default = ELEMENTS // QUICK_SHARE if options.quick else ELEMENTS
        cases = cpu_cases(options.elements or default, dtypes)
    problems = [(case, select(options.only, case)) for case in cases]
    found = [(case, operations) for case, operations in problems if operations]
    if not found:
        known = sorted({name for key in OPERATIONS for name in key})
        raise FenchelError(f"--only must match one of {', '.join(known)}, got {options.only!r}")
    return found


def measure(
    problems: Sequence[Problem], effort: Effort, environment: Environment
) -> Iterator[list[Row]]:
    """Yield the rows of each case; the kernels of a family are compiled before it is measured.

    A case that fails does not stop the others; it is raised after them.
    """
    failures: list[Exception] = []
    with processes() as pool:
        for (family, dtype), some in groupby(problems, lambda p: (p[0].family, p[0].dtype_name)):
            stage = list(some)
            tasks = tasks_of(stage)
            for _ in steps("compiling", compile_ahead(pool, tasks), len(tasks)):
                pass
            title = f"measuring {family}, {dtype}"
            for case, operations in steps(title, stage, len(stage), lambda p: str(p[0])):
                try:
                    measured = measure_case(case, operations, timer_for(case), effort)
                except Exception as failure:
                    failure.add_note(f"while measuring {case}")
                    failures.append(failure)
                    continue
                yield make_rows(case, measured, environment)
    if failures:
        raise ExceptionGroup("cases that could not be measured", failures)


def left_of(problems: Sequence[Problem], path: Path, commit: str) -> list[Problem]:
    """The problems with an operation of which the file has no row for this commit."""
    known = measured_before(path, commit)
    return [
        (case, operations)
        for case, operations in problems
        if any((case, operation.name) not in known for operation in operations)
    ]


def rows_of(commit: str, path: Path) -> list[Row]:
    """The rows of an earlier commit, whose name may be shortened."""
    rows = read(path)
    found = [row for row in rows if row.commit.startswith(commit)]
    if not found:
        known = ", ".join(sorted({row.commit for row in rows}))
        raise FenchelError(f"--base must be a commit in {path.name} ({known}), got {commit}")
    return found


def results(path: Path) -> list[Row]:
    """For each table of a file, the rows of the last commit that measured it."""
    rows = newest(read(path))
    if not rows:
        raise FenchelError(f"no results to draw: {path.name} must have rows, got none")
    return rows


def show(path: Path, base: Sequence[Row] = ()) -> str:
    """Write the tables and the picture of a file; return the text to print."""
    current = results(path)
    text = markdown(current, base)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    if importlib.util.find_spec("matplotlib") is None:
        return f"{text}\nwrote {path.stem}.md in {path.parent}; --draw adds the picture"
    from benchmarks.picture import ratio_picture

    ratio_picture(current).savefig(path.with_suffix(".png"))
    return f"{text}\nwrote {path.stem}.md and {path.stem}.png in {path.parent}"


def picture_of_some(path: Path, options: argparse.Namespace) -> str:
    """Draw the rows of a file that `--only` and `--dtype` select; return the text to print."""
    from benchmarks.picture import ratio_picture

    chosen = [
        row
        for row in results(path)
        if matches(options.only, row.operation, row.family)
        and (not options.dtype or row.dtype in options.dtype)
    ]
    if not chosen:
        raise FenchelError(
            f"no results to draw: --only must match rows in {path.name}, got {options.only!r}"
        )
    ratio_picture(chosen).savefig(options.picture)
    return f"drew {options.picture}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Time the operations.")
    parser.add_argument("--quick", action="store_true", help="smaller problems, fewer rounds")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="a regular expression of names or families"
    )
    parser.add_argument("--resume", action="store_true", help="only what the file does not have")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--dtype", nargs="*", choices=("float32", "bfloat16", "float64"))
    parser.add_argument("--base", metavar="COMMIT", help="compare with that commit's rows")
    parser.add_argument("--commit", help="the commit that is measured, if git does not know it")
    parser.add_argument("--draw", action="store_true", help="measure nothing; tables from the file")
    parser.add_argument(
        "--picture",
        type=Path,
        help="with --draw: draw this picture only, of the rows that --only and --dtype select",
    )
    parser.add_argument("--elements", type=int, help="scores of a problem on the CPU")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    check_pattern(options.only)
    name = NAMES[options.device] + ("-quick" if options.quick else "")
    path = options.out / f"{name}.csv"
    base = rows_of(options.base, path) if options.base else []
    if options.draw:
        print(picture_of_some(path, options) if options.picture else show(path, base))
        return
    if options.device == "cuda" and not torch.cuda.is_available():
        raise FenchelError("--device cuda must have a CUDA device, got none")
    environment = describe(options.device, options.commit)
    problems = problems_of(options)
    if options.resume:
        problems = left_of(problems, path, environment.commit)
    try:
        for rows in measure(problems, EFFORT[options.device, options.quick], environment):
            update(path, rows)
    finally:
        if path.exists():
            print(show(path, base))


if __name__ == "__main__":
    try:
        main()
    except FenchelError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(2)
