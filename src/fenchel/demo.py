"""Two models that inflect words, one dense and one sparse: `python -m fenchel.demo [--out demo]`.

Trains softmax and 1.5-entmax models on the languages that come with the package, prints their
accuracy and sparsity, draws one lattice, and writes a report and pictures of the maps into a folder.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fenchel.extras import require

if TYPE_CHECKING:
    from fenchel.report import Cell
    from fenchel.tasks.sequences.example import Example
    from fenchel.training import Evaluation, Run, Splits

MODELS = {
    "softmax": ("attention_map=softmax", "output_alpha=1"),
    "1.5-entmax": ("attention_map=entmax", "attention_alpha=1.5", "output_alpha=1.5"),
}
SPARSE = "1.5-entmax"
SETTINGS = ("validate_every=2", "monitor=exact", "log_every=10")
FIGURES = {
    "accuracy": "right forms, %",
    "attention_support": "source symbols attended, mean",
    "output_support": "next symbols considered, mean",
    "single": "one answer has all probability, %",
    "complete": "all answers of non-zero probability are listed, %",
    "certified": "the answer is proven the most probable, %",
}


@dataclass(frozen=True)
class Result:
    """A trained model of the demo and its evaluation on the test set."""

    name: str
    run: Run
    evaluation: Evaluation
    seconds: float


def train(name: str, data: Splits, out: Path, changes: Sequence[str]) -> Result:
    """Train one of the models and evaluate it."""
    from fenchel.cli.console import on_validation
    from fenchel.cli.evaluate import evaluate_run
    from fenchel.recipes import make_recipe
    from fenchel.training import fit

    recipe = make_recipe("inflection", [*SETTINGS, *MODELS[name], *changes], preset="small")
    report = on_validation(recipe.task.describe_means, name)
    result = fit(out / name, recipe, data, on_validation=report)
    evaluation = evaluate_run(result.run, data.test, "test")
    return Result(name, result.run, evaluation, result.history[-1]["seconds"])


def compare(results: Sequence[Result]) -> list[list[Cell]]:
    """One row a figure, with a column a model; the last row is the time that training took."""
    rows: list[list[Cell]] = [
        [text, *(float(result.evaluation.metrics[key]) for result in results)]
        for key, text in FIGURES.items()
    ]
    return [*rows, ["seconds of training", *(round(result.seconds) for result in results)]]


def lattice_example(result: Result, examples: Sequence[Example]) -> int:
    """The place of an example to show: few answers, all known, the best one right but not sure."""
    codec: Any = result.run.processor

    def rank(place: int) -> tuple[bool, bool, bool, float]:
        answer, example = result.evaluation.predictions[place], examples[place]
        few = answer.complete and 2 <= len(answer.hypotheses) <= 4
        right = codec.decode(answer.best.tokens) == example.target
        unsure = abs(answer.best.probability - 0.6)
        return (not few, not right, example.group != "english", unsure)

    return min(range(len(examples)), key=rank)


def show(results: Sequence[Result], data: Splits) -> None:
    """Print the comparison and one lattice."""
    from fenchel.cli.console import grid, out, write
    from fenchel.search import Lattice
    from fenchel.tasks.search_options import PROOFS, proof
    from fenchel.tasks.sequences.answers import input_text

    title = f"inflection of {len(data.test)} unseen forms, after {len(data.train)} examples"
    out.print(grid(title, ["", *MODELS], compare(results)))
    sparse = next(result for result in results if result.name == SPARSE)
    place = lattice_example(sparse, data.test)
    example, answer = data.test[place], sparse.evaluation.predictions[place]
    codec: Any = sparse.run.processor
    text = Lattice.of(answer).text(lambda token: codec.target_vocabulary.symbols([token])[0])
    write(f"\n{input_text(example, codec)}: {PROOFS[proof(answer)]}\n{text}")
    write(f"the right form is {example.target}\n")


def write_report(path: Path, results: Sequence[Result], data: Splits, command: str) -> None:
    """One page: both models beside each other, then the sparse one in full."""
    from fenchel.analysis.run_report import comparison_report
    from fenchel.report import Table, render

    table = Table(
        f"Results on {len(data.test)} forms that were not seen in training",
        ["", *MODELS],
        compare(results),
    )
    page = comparison_report(
        {result.name: result.run for result in results},
        data.test,
        {result.name: result.evaluation for result in results},
        table=table,
        command=command,
    )
    path.write_text(render(page), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    require("rich", extra="train")
    require("matplotlib", extra="plot")
    from fenchel.analysis import maps
    from fenchel.cli.console import out, write
    from fenchel.cli.program import program
    from fenchel.recipes import make_recipe
    from fenchel.training import DataSource, Splits
    from fenchel.training.device import cpu_threads

    if options.maps:
        with out.status("measuring the maps (the first run compiles the kernels)"):
            figures = maps.measure(options.rows)
        out.print(maps.table(figures, options.rows, 512))
    whole = DataSource().splits(make_recipe("inflection"))
    few = slice(0, options.examples)
    data = Splits(whole.train[few], whole.dev[few], whole.test[few], whole.notes)
    options.out.mkdir(parents=True, exist_ok=True)
    write("\n".join(data.notes))
    sizes = [f"{name}_size={options.size}" for name in ("embedding", "hidden")]
    changes = [*sizes, f"epochs={options.epochs}", "accelerator=cpu"]
    with cpu_threads(1):  # two threads would spend longer waiting for each other
        results = [train(name, data, options.out, changes) for name in MODELS]
    show(results, data)
    report = options.out / "report.html"
    given = sys.argv[1:] if arguments is None else arguments
    write_report(report, results, data, shlex.join(["python", "-m", "fenchel.demo", *given]))
    with out.status("drawing the maps"):
        pictures = list(maps.draw(options.out, options.points))
    written = [report, *pictures, *(result.run.path for result in results)]
    write("\n  ".join(["wrote", *map(str, written)]))
    write(f"try: {program()} predict {shlex.quote(str(results[-1].run.path))} -")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m fenchel.demo", description="Train a dense and a sparse model and compare them."
    )
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder of all that is made")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the examples")
    parser.add_argument("--size", type=int, default=128, help="of embeddings and states")
    parser.add_argument("--examples", type=int, help="of each part of the data, at most")
    parser.add_argument("--points", type=int, default=121, help="grid of a surface, each way")
    parser.add_argument("--maps", action="store_true", help="also measure the maps themselves")
    parser.add_argument("--rows", type=int, default=4096, help="rows of scores of --maps")
    return parser


if __name__ == "__main__":
    from fenchel.cli import errors_printed

    with errors_printed(resumable=True):
        main()
