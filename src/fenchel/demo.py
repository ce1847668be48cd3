"""Two models that inflect words, one dense and one sparse: `python -m fenchel.demo [--out demo]`.

Trains softmax and 1.5-entmax models on the languages that come with the package, prints what each is
worth and how sparse it is, draws one lattice, and writes a report and pictures of the maps into a folder.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from fenchel.extras import require

if TYPE_CHECKING:
    from fenchel.analysis.tables import Cell
    from fenchel.data import Example
    from fenchel.recipes.figures import Figures
    from fenchel.recipes.reading import Splits
    from fenchel.recipes.running import Trained
    from fenchel.search import Answer

MODELS = {
    "softmax": ("attention_map=softmax", "output_alpha=1"),
    "1.5-entmax": ("attention_map=entmax", "attention_alpha=1.5", "output_alpha=1.5"),
}
SPARSE = "1.5-entmax"
# The paper's model, smaller and quicker to learn: a few minutes on one core.
SETTINGS = (
    "layers=1",
    "dropout=0.2",
    "attention=dot",
    "training.batch_size=32",
    "learning_rate=0.003",
    "schedule=cosine",
    "validate_every=2",
    "monitor=exact",
    "log_every=10",
)
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
    """A trained model of the demo, its figures and its answers on the test set."""

    name: str
    trained: Trained
    figures: Figures
    answers: list[Answer]
    seconds: float


def train(name: str, data: Splits, out: Path, changes: Sequence[str]) -> Result:
    """Train one of the models and measure it."""
    from fenchel.cli.epochs import teller
    from fenchel.cli.progress import counting
    from fenchel.recipes import recipe
    from fenchel.recipes.figures import figures_of, keep_figures
    from fenchel.recipes.running import Trained, learn

    made = recipe("inflection", [*SETTINGS, *MODELS[name], *changes])
    fitted = learn(made, data, out / name, report=teller(name))
    trained = Trained.load(out / name)
    with counting(f"{name}: answering", len(data.test)) as progress:
        figures, answers = figures_of(trained, data.test, progress=progress)
    keep_figures(trained.run, "test", figures)
    return Result(name, trained, figures, answers, fitted.history[-1]["seconds"])


@contextmanager
def one_thread() -> Iterator[None]:
    """Steps of models this small are shorter than the time that two threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def compare(results: Sequence[Result]) -> list[list[Cell]]:
    """One row a figure, with a column a model; the last row is the time that training took."""
    rows: list[list[Cell]] = [
        [text, *(float(result.figures[key]) for result in results)] for key, text in FIGURES.items()
    ]
    return [*rows, ["seconds of training", *(round(result.seconds) for result in results)]]


def lattice_example(result: Result, examples: Sequence[Example]) -> int:
    """The place of an example to show: few answers, all known, the best one right but not sure."""
    codec = result.trained.run.codec

    def rank(place: int) -> tuple[bool, bool, bool, float]:
        answer, example = result.answers[place], examples[place]
        few = answer.complete and 2 <= len(answer.hypotheses) <= 4
        right = codec.decode(answer.best.tokens) == example.target
        unsure = abs(answer.best.probability - 0.6)
        return (not few, not right, example.group != "english", unsure)

    return min(range(len(examples)), key=rank)


def show(results: Sequence[Result], data: Splits) -> None:
    """Print the comparison and one lattice."""
    from fenchel.analysis.wording import SENTENCES, asked, proof
    from fenchel.cli.console import grid, out, write
    from fenchel.search import Lattice

    title = f"inflection of {len(data.test)} unseen forms, after {len(data.train)} examples"
    out.print(grid(title, ["", *MODELS], compare(results)))
    sparse = next(result for result in results if result.name == SPARSE)
    place = lattice_example(sparse, data.test)
    example, answer, codec = data.test[place], sparse.answers[place], sparse.trained.run.codec
    text = Lattice.of(answer).text(lambda token: codec.target_vocabulary.symbols([token])[0])
    write(f"\n{asked(example, codec)}: {SENTENCES[proof(answer)]}\n{text}")
    write(f"the right form is {example.target}\n")


def write_report(path: Path, results: Sequence[Result], data: Splits) -> None:
    """One page: both models beside each other, then the sparse one in full."""
    from fenchel.analysis.comparison import comparison
    from fenchel.analysis.report import Table, page

    table = Table(
        f"on {len(data.test)} forms that were not seen in training", ["", *MODELS], compare(results)
    )
    models = {result.name: (result.trained, result.figures, result.answers) for result in results}
    path.write_text(page(comparison(table, models, SPARSE, data.test)), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    require("rich", extra="train")
    require("matplotlib", extra="plot")
    from fenchel.analysis import maps
    from fenchel.cli.console import out, write
    from fenchel.cli.program import program
    from fenchel.recipes import recipe
    from fenchel.recipes.reading import Splits, splits

    if options.maps:
        with out.status("measuring the maps (the first run compiles the kernels)"):
            figures = maps.measure(options.rows)
        out.print(maps.table(figures, options.rows, 512))
    whole = splits(recipe("inflection"), [], [], [])
    few = slice(0, options.examples)
    data = Splits(whole.train[few], whole.dev[few], whole.test[few], whole.notes)
    options.out.mkdir(parents=True, exist_ok=True)
    write("\n".join(data.notes))
    sizes = [f"{name}_size={options.size}" for name in ("embedding", "hidden")]
    changes = [*sizes, f"epochs={options.epochs}", "accelerator=cpu"]
    with one_thread():
        results = [train(name, data, options.out, changes) for name in MODELS]
    show(results, data)
    report = options.out / "report.html"
    write_report(report, results, data)
    with out.status("drawing the maps"):
        pictures = list(maps.draw(options.out, options.points))
    written = [report, *pictures, *(result.trained.run.path for result in results)]
    write("\n  ".join(["wrote", *map(str, written)]))
    write(f"try: {program()} predict {shlex.quote(str(results[-1].trained.run.path))} -")


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
    from fenchel.cli import failures_told

    with failures_told(goes_on=True):
        main()
