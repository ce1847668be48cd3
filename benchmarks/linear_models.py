"""Times of the linear classifiers against scikit-learn's `LogisticRegression`, to the same tolerance.

    python -m benchmarks.linear_models [--reuters FOLDER] [--rounds N]

All models of a problem take turns, and the order is reversed after every round. Reuters-21578 has the
texts with one topic, as TF–IDF weights of 20,000 words; without its folder only the digits are fitted.
The results are written to `benchmarks/results/linear.md`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from benchmarks.environment import RESULTS, describe
from fenchel.sklearn import SoftmaxClassifier, SparsemaxClassifier
from fenchel.tasks.multilabel.processor import LabelProcessor
from fenchel.tasks.multilabel.public_sets import reuters21578

TOLERANCE = 1e-5  # a tenth of the default, with which the losses agree to six digits
BASE = "LogisticRegression"
MODELS: dict[str, Callable[[], Any]] = {
    BASE: lambda: LogisticRegression(tol=TOLERANCE, max_iter=1000),
    "SoftmaxClassifier": lambda: SoftmaxClassifier(tol=TOLERANCE),
    "SparsemaxClassifier": lambda: SparsemaxClassifier(tol=TOLERANCE),
}


class Problem(NamedTuple):
    """Features and classes."""

    name: str
    features: Any
    classes: Any


class Times(NamedTuple):
    """The seconds of a model in every round, its loss and its iterations."""

    seconds: list[float]
    loss: float | None
    iterations: int


def digits() -> Problem:
    """1797 pictures of digits with 64 pixels each, between 0 and 1."""
    X, y = load_digits(return_X_y=True)
    return Problem(f"digits, {X.shape[0]} × {X.shape[1]}, {len(set(y))} classes", X / 16, y)


def reuters(folder: str | Path) -> Problem:
    """The training texts of Reuters-21578 that have one topic."""
    splits = reuters21578(folder)
    texts = [each for each in splits["train"] + splits["dev"] if len(each.labels or ()) == 1]
    processor = LabelProcessor.fit(texts, max_size=20_000, min_count=1)
    data = processor.encode(texts)
    rows, columns = data.features.shape
    classes = data.targets.argmax(1)
    name = f"Reuters TF–IDF, {rows} × {columns} sparse, {len(set(classes))} classes"
    return Problem(name, data.features, classes)


def measure(problem: Problem, rounds: int) -> dict[str, Times]:
    """The models on a problem, after one round that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in MODELS}
    fitted = {}
    for turn in range(rounds + 1):
        for name in list(MODELS)[:: -1 if turn % 2 else 1]:
            model, start = MODELS[name](), time.perf_counter()
            fitted[name] = model.fit(problem.features, problem.classes)
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {
        name: Times(times, logistic_loss(fitted[name], problem), int(np.max(fitted[name].n_iter_)))
        for name, times in seconds.items()
    }


def logistic_loss(model: Any, problem: Problem) -> float | None:
    """The regularized mean loss of multinomial logistic regression, for the models that minimize it."""
    if not isinstance(model, LogisticRegression | SoftmaxClassifier):
        return None
    scores = model.decision_function(problem.features)
    places = np.searchsorted(model.classes_, problem.classes)
    largest = scores.max(1)
    normalizers = largest + np.log(np.exp(scores - largest[:, None]).sum(1))
    losses = normalizers - scores[np.arange(len(scores)), places]
    return float(losses.mean() + 0.5 * (model.coef_**2).sum() / len(scores))


def table(problem: Problem, found: dict[str, Times]) -> str:
    """The times of a problem as Markdown; ratios are medians over rounds."""
    lines = [
        f"## {problem.name}",
        "",
        "| model | ms | ratio | iterations | loss |",
        "|---|---|---|---|---|",
    ]
    for name, (seconds, loss, iterations) in found.items():
        ratios = [own / base for own, base in zip(seconds, found[BASE].seconds, strict=True)]
        shown = "" if loss is None else f"{loss:.8f}"
        milliseconds = 1000 * median(seconds)
        lines.append(
            f"| `{name}` | {milliseconds:.0f} | {median(ratios):.2f} | {iterations} | {shown} |"
        )
    return "\n".join(lines)


def report(tables: Sequence[str]) -> str:
    """The page of results."""
    here = describe("cpu")
    tree = f"{here.commit} with local changes" if here.dirty else here.commit
    machine = f"{here.hardware}, {here.cores} cores, {here.threads} threads; torch {here.torch}"
    intro = (
        f"{machine}; commit {tree}; {here.date}.\n\nOne fit, to a largest component of the gradient of "
        f"the mean loss of {TOLERANCE:g}. All models took turns in one process; ratios are medians over "
        "rounds."
    )
    return "\n\n".join(["# Linear classifiers", intro, *tables]) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reuters", metavar="FOLDER", help="the folder of Reuters-21578")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "linear.md")
    options = parser.parse_args(arguments)
    problems = [digits(), *([reuters(options.reuters)] if options.reuters else [])]
    page = report([table(each, measure(each, options.rounds)) for each in problems])
    options.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
