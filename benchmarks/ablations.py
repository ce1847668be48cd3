"""What the special paths of the CPU kernels gain: `python -m benchmarks.ablations [--only PATTERN]`.

A path is switched off by changing lines in a copy of the sources. As in `against`, two processes, one
with the path and one without, take turns on every call. The gain is the time without the path divided by
the time with it. Results are in `results/ablations.csv` and, as a table, in `results/ablations.md`; a run
with a pattern replaces only the rows that it measures.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

import fenchel
from benchmarks.against import PAUSE, ROOT, compare, worker
from benchmarks.environment import RESULTS, Environment, describe
from benchmarks.progress import steps

KERNELS = Path("src/fenchel/kernels/cpu")
ELEMENTS = 2_048_000  # scores of a call, unless its columns are more
LEAST_GAIN = 1.1  # a path below that on all of its calls is not worth its code


@dataclass(frozen=True)
class Ablation:
    """A path: the lines that switch it off, by file, and the calls that it is for, by columns."""

    path: str
    changes: tuple[tuple[str, str, str], ...]
    calls: dict[str, tuple[int, ...]]

    def apply(self, root: Path) -> None:
        """Switch the path off in a copy of the sources."""
        for name, old, new in self.changes:
            file = root / KERNELS / name
            text = file.read_text(encoding="utf-8")
            if text.count(old) != 1:
                raise SystemExit(f"{name} must have this line once: {old}")
            file.write_text(text.replace(old, new), encoding="utf-8")


BATCHES = "if columns <= DENSE_COLUMNS and (number is None or is_batched(columns, number)):"
ABLATIONS = (
    Ablation(
        "entmax: batches of short rows, 1 < α ≤ 2",
        (("entmax/forward.py", BATCHES, "if columns < 0:"),),
        {
            "sparsemax": (16, 64, 128, 256),
            "entmax(1.5)": (16, 64, 128, 256),
            "entmax(1.1)": (16, 64, 256, 1024),
            "entmax(1.3)": (16, 64, 256),
            "entmax(1.75)": (16, 64, 256),
        },
    ),
    Ablation(
        "entmax: narrow rows in vector lanes, α = 3/2 and 2",
        (("entmax/narrow_rows.py", "NARROW_COLUMNS = 64", "NARROW_COLUMNS = 0"),),
        {"sparsemax": (16, 32, 64), "entmax(1.5)": (16, 32, 64)},
    ),
    Ablation(
        "entmax: closed form of the last step in narrow rows",
        (("entmax/narrow_rows.py", "CLOSED_FORM_MASS = 2.0", "CLOSED_FORM_MASS = -1.0"),),
        {"sparsemax": (16, 64), "entmax(1.5)": (16, 64)},
    ),
    Ablation(
        "entmax: batches of short rows, α > 2",
        (
            (
                "entmax/forward.py",
                "elif number is not None and is_batched_above_2(columns, number):",
                "elif columns < 0:",
            ),
        ),
        {"entmax(3)": (16, 64, 256)},
    ),
    Ablation(
        "entmax: guess from softmax (N.13), instead of (N.15)",
        (("entmax/guesses.py", "SOFTMAX_GUESS_EPSILON = 0.25", "SOFTMAX_GUESS_EPSILON = 0.0"),),
        {"entmax(1.1)": (64, 256, 1024), "entmax(1.2)": (64, 256)},
    ),
    Ablation(
        "entmax: first guesses (N.13) and (N.15)",
        (("entmax/guesses.py", "range(GUESS_VISITS)", "range(0)"),),
        {"entmax(1.1)": (64, 256), "entmax(1.3)": (64, 256), "entmax(1.75)": (64, 256)},
    ),
    Ablation(
        "entmax: block maxima of long rows",
        (("solver/normalizer.py", "WHOLE_ROW_COLUMNS = 256", "WHOLE_ROW_COLUMNS = 1 << 60"),),
        {
            "sparsemax": (512, 8192, 128_000),
            "entmax(1.5)": (512, 8192, 128_000),
            "entmax(1.3)": (512, 8192, 128_000),
            "entmax(3)": (512, 8192),
        },
    ),
    Ablation(
        "entmax: softmax, α = 1",
        (("entmax/forward.py", "if alpha == 1.0:", "if alpha == -1.0:"),),
        {"entmax(1)": (64, 512, 8192)},
    ),
    Ablation(
        "entmax backward: blocks of zeros are skipped",
        (
            ("entmax/backward.py", "1.0 if off_support(mass) else 0.0)", "0.0)"),
            ("entmax/backward.py", "        if not off_support(mass):", "        if True:"),
        ),
        {
            "sparsemax backward": (64, 512, 8192),
            "entmax(1.5) backward": (64, 512, 8192),
            "entmax(1.3) backward": (64, 512, 8192),
        },
    ),
    Ablation(
        "entmax backward: weights of α = 3/2 and 2 without powers",
        (
            ("entmax/backward.py", "if alpha == 2.0:", "if alpha == -2.0:"),
            ("entmax/backward.py", "elif alpha == 1.5:", "elif alpha == -1.5:"),
        ),
        {"sparsemax backward": (64, 512, 8192), "entmax(1.5) backward": (64, 512, 8192)},
    ),
    Ablation(
        "entmax_loss: blocks off the support are skipped",
        (
            (
                "entmax_loss/forward.py",
                "            continue",
                "            pass",
            ),
        ),
        {"entmax_loss(1.5)": (512, 32_000), "entmax_loss(1.3)": (512, 32_000)},
    ),
    Ablation(
        "entmax_loss backward: blocks off the support are skipped",
        (
            (
                "entmax_loss/backward.py",
                "if float64(largest_of_vectors(block, size)) - pivot >= edge:",
                "if True:",
            ),
        ),
        {"entmax_loss(1.5) backward": (512, 32_000), "entmax_loss(1.3) backward": (512, 32_000)},
    ),
    Ablation(
        "budget: batches of short rows",
        (
            (
                "budget/__init__.py",
                "short = columns <= SHORT_COLUMNS and scores.dtype == torch.float32",
                "short = False",
            ),
        ),
        {"budget(2)": (16, 64, 256), "budget(10)": (64, 256)},
    ),
    Ablation(
        "budget: bound from block maxima",
        (
            (
                "budget/long_rows.py",
                "real(scores, _lower_bound(maxima, columns, rank))",
                "real(scores, -math.inf)",
            ),
        ),
        {"budget(2)": (512, 8192, 128_000), "budget(10)": (8192, 128_000)},
    ),
    Ablation(
        "normmax: batches of short rows, α = 2",
        (("normmax.py", "_is_batched(columns, alpha):", "columns < 0:"),),
        {"normmax": (16, 64, 256)},
    ),
    Ablation(
        "fusedmax: candidates",
        (
            (
                "fusedmax/__init__.py",
                "floor = largest + (edge_of(offset, rest, 2.0) - 4.0 * strength)",
                "floor = -1e30",
            ),
        ),
        {"fusedmax": (64, 512, 8192)},
    ),
    Ablation(
        "fusedmax: Condat's method before dynamic programming",
        (
            (
                "fusedmax/total_variation.py",
                "if strength > 0.0 and _condat(",
                "if strength < 0.0 and _condat(",
            ),
        ),
        {"fusedmax": (64, 512, 8192)},
    ),
    Ablation(
        "oscarmax: rows of one group",
        (
            (
                "oscarmax/__init__.py",
                "if strength > 0.0 and strength * present",
                "if strength < 0.0 and strength * present",
            ),
        ),
        {"oscarmax": (64, 512, 8192)},
    ),
    Ablation(
        "oscarmax: candidates",
        (
            (
                "oscarmax/__init__.py",
                "floor = largest - 1.0 - strength * (present - 1.0)",
                "floor = smallest - 1.0",
            ),
        ),
        {"oscarmax": (16, 64, 512)},
    ),
    Ablation(
        "oscarmax: buckets",
        (("oscarmax/__init__.py", "if count <= INSERTION_SORT_ENTRIES:", "if count >= 0:"),),
        {"oscarmax": (64, 512), "oscarmax(0.0001)": (512, 8192, 128_000)},
    ),
    Ablation(
        "oscarmax: insertion sort of few entries",
        (("oscarmax/sorting.py", "if count <= INSERTION_SORT_ENTRIES:", "if count < 0:"),),
        {"oscarmax": (16, 64, 512)},
    ),
)


@dataclass(frozen=True)
class Row(Environment):
    """The gain of a path on a call, over pairs of processes."""

    path: str
    call: str
    rows: int
    columns: int
    dtype: str
    gain: float
    least: float
    largest: float

    @property
    def place(self) -> tuple[str, str, int]:
        return self.path, self.call, self.columns


MAPS: dict[str, Callable[..., Tensor]] = {
    "entmax": fenchel.entmax,
    "budget": fenchel.budget,
    "normmax": fenchel.normmax,
    "sparsemax": fenchel.sparsemax,
    "fusedmax": fenchel.fusedmax,
    "oscarmax": fenchel.oscarmax,
}


def rows_of(columns: int) -> int:
    return max(ELEMENTS // columns, 8)


def make_call(name: str, columns: int) -> Callable[[], object]:
    """A call on normal scores: `map(parameter)`, the same with ` backward`, or the loss."""
    found = re.fullmatch(r"(\w+)(?:\((.*)\))?( backward)?", name)
    assert found is not None, name
    function, parameter, backward = found.groups()
    parameters = [float(parameter)] if parameter else []
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows_of(columns), columns, generator=generator)
    target = torch.randint(columns, (len(scores),), generator=generator)

    def call() -> Tensor:
        if function == "entmax_loss":
            return fenchel.entmax_loss(scores, target, *parameters)
        return MAPS[function](scores, *parameters)

    if not backward:
        return call
    scores.requires_grad_()
    output = call()
    upstream = torch.randn(output.shape, generator=generator)
    return lambda: torch.autograd.grad(output, scores, upstream, retain_graph=True)


def serve() -> None:
    """Answer requests: [name, columns, n] is the mean time of n calls."""
    calls: dict[tuple[str, int], Callable[[], object]] = {}
    for line in sys.stdin:
        name, columns, count = json.loads(line)
        if (name, columns) not in calls:
            calls.clear()
            calls[name, columns] = make_call(name, columns)
            calls[name, columns]()  # compiles
        time.sleep(PAUSE)
        start = time.perf_counter()
        for _ in range(count):
            calls[name, columns]()
        print(json.dumps((time.perf_counter() - start) / count), flush=True)


def changed_sources(ablation: Ablation, folder: Path) -> Path:
    """A copy of the sources without the path, made unless an earlier run has left it in the folder."""
    root = folder / re.sub(r"\W+", "-", ablation.path)
    if not root.exists():
        for part in ("src", "benchmarks"):
            ignored = shutil.ignore_patterns("__pycache__", "results")
            shutil.copytree(ROOT / part, root / part, ignore=ignored)
        ablation.apply(root)
    return root


def measure(
    ablation: Ablation, folder: Path, pairs: int, rounds: int, environment: Environment
) -> list[Row]:
    """The gains of one path on all of its calls."""
    keys = [(name, columns) for name, shapes in ablation.calls.items() for columns in shapes]
    gains: dict[tuple[str, int], list[float]] = {key: [] for key in keys}
    root = changed_sources(ablation, folder)
    for _ in range(pairs):
        with (
            worker(root, __file__, "--worker") as without,
            worker(ROOT, __file__, "--worker") as full,
        ):
            for key in keys:
                gains[key].append(compare(full, without, key, rounds))
    return [
        Row(
            **asdict(environment),
            path=ablation.path,
            call=name,
            rows=rows_of(columns),
            columns=columns,
            dtype="float32",
            gain=round(median(found), 3),
            least=round(min(found), 3),
            largest=round(max(found), 3),
        )
        for (name, columns), found in gains.items()
    ]


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    kinds = {"int": int, "float": float, "str": str, "bool": lambda text: text == "True"}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(**{field.name: kinds[str(field.type)](line[field.name]) for field in fields(Row)})
            for line in csv.DictReader(file)
        ]


def update(path: Path, new: Sequence[Row]) -> list[Row]:
    """Replace the rows of the same calls in the file; paths that no longer exist are dropped."""
    places, order = {row.place for row in new}, [ablation.path for ablation in ABLATIONS]
    rows = [row for row in read(path) if row.place not in places] + list(new)
    rows = sorted((row for row in rows if row.path in order), key=lambda row: order.index(row.path))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    return rows


def markdown(rows: Iterable[Row]) -> str:
    """One line per path and call; the gain by columns."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row.path, row.call), []).append(row)
    environments = dict.fromkeys(
        f"{row.hardware}, {row.cores} cores, {row.threads} threads; torch {row.torch}, numba"
        f" {row.numba}; commit {row.commit}; {row.date}"
        for found in lines.values()
        for row in found
    )
    parts = [
        "# Ablations of the CPU kernels",
        "The time of a call without a special path, divided by its time with the path, by the columns"
        f" of the scores: float32, {ELEMENTS:,} normal scores per call, at least 8 rows. The median"
        " over pairs of processes; `python -m benchmarks.ablations` measures it.",
        "\n".join(f"- {each}" for each in environments),
    ]
    table = ["| path | call | gain by columns |", "|---|---|---|"]
    for (path, call), found in lines.items():
        gains = ", ".join(f"{row.columns:,}: {row.gain:.2f}" for row in found)
        table.append(f"| {path} | {call} | {gains} |")
    return "\n\n".join([*parts, "\n".join(table)]) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.ablations")
    parser.add_argument("--only", default="", help="regular expression of paths")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of processes")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each process")
    parser.add_argument(
        "--folder", type=Path, help="keep the changed sources, already compiled, here"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        serve()
        return
    chosen = [ablation for ablation in ABLATIONS if re.search(options.only, ablation.path)]
    environment, path = describe("cpu"), options.out / "ablations.csv"
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for ablation in steps("measuring", chosen, len(chosen), lambda each: each.path):
            rows = measure(ablation, folder, options.pairs, options.rounds, environment)
            text = markdown(update(path, rows))
            path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(markdown(read(path)))


if __name__ == "__main__":
    main()
