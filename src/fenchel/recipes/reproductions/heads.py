"""The figures of what attention heads do, measured on the development set and drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from fenchel import plot
from fenchel.analysis import ExampleSentence, Head, HeadTable, alpha_trajectories
from fenchel.analysis.run_heads import heads_of_run
from fenchel.plot.heads import HeadPanel
from fenchel.recipes.reproductions.config import ReproductionConfig, TableData
from fenchel.recipes.reproductions.jobs import Reporter, read_splits
from fenchel.recipes.reproductions.results import Measurement
from fenchel.recipes.reproductions.tables import Experiment, HeadsTable, row_name
from fenchel.report import Log, read_log
from fenchel.tasks import load_run
from fenchel.training import Recipe
from fenchel.training.files import save_json, write_atomically

KEPT = 60  # of the first sentences, from which the examples are chosen
LONGEST = 16  # tokens of a sentence that is drawn
SHORTEST = 6
ROLE_FIGURES = {
    "offset −1 heads": ("previous_token", "heads"),
    "offset −1 confidence": ("previous_token", "median_confidence"),
    "offset +1 heads": ("next_token", "heads"),
    "offset +1 confidence": ("next_token", "median_confidence"),
    "merging heads": ("subword_merging", "heads"),
    "merging highest": ("subword_merging", "highest"),
    "interrogation highest": ("interrogation", "highest"),
}
"""Figures of a model: the role that they are about, and what of it."""


@dataclass(frozen=True)
class AnalyzedModel:
    """What was measured of a model."""

    table: HeadTable
    log: Log


@dataclass(frozen=True)
class HeadsJob:
    """Figures to be measured and drawn from the trained models of a table.

    Args:
        table: The table.
        experiments: Its experiments.
        folders: The folders of their runs, in the same order; with several seeds those of the first.
        recipe: The recipe of one of them, for reading the data.
        source: The data.
        pictures: The folder of the pictures.
    """

    table: HeadsTable
    experiments: Sequence[Experiment]
    folders: Sequence[Path]
    recipe: Recipe
    source: TableData
    pictures: Path

    @classmethod
    def of(
        cls, table: HeadsTable, experiments: Sequence[Experiment], config: ReproductionConfig
    ) -> HeadsJob:
        """The job for some experiments of a table."""
        recipe = config.recipe(table, experiments[0])
        seed = recipe.training.seed
        folders = [config.run_folder(each, seed) for each in experiments]
        pictures = config.results / table.name / ("quick" if config.quick else "")
        return cls(table, experiments, folders, recipe, config.table_data(table), pictures)

    def __call__(self, reporter: Reporter) -> list[Measurement]:
        """Measure the heads of all models, draw the figures, and return what the paper states."""
        examples = read_splits(self.source, self.recipe).dev
        questions = [n for n, example in enumerate(examples) if "?" in example.source]
        models = {}
        for experiment, folder in zip(self.experiments, self.folders, strict=True):
            reporter.message(f"{self.table.name}: heads of {experiment.name}")
            run = load_run(folder)
            table = heads_of_run(
                run,
                examples,
                interrogatives=self.table.interrogatives,
                kept={*range(KEPT), *questions[:KEPT]},
            )
            models[experiment.name] = AnalyzedModel(table, read_log(run.log_path))
        draw(models, self.pictures)
        save_json(self.pictures / "heads.json", {n: _numbers(m.table) for n, m in models.items()})
        reporter.message(f"{self.table.name}: pictures in {self.pictures}")
        return [
            row
            for experiment in self.experiments
            for row in _measurements(experiment, models[experiment.name].table)
        ]


def draw(models: Mapping[str, AnalyzedModel], folder: Path) -> None:
    """Draw figures 2–10 of Correia et al. (2019), without those that need heads which no model has."""
    tables = {name: model.table for name, model in models.items()}
    learned = {name: table for name, table in tables.items() if _learns(table)}
    sparse = {name: table for name, table in tables.items() if _is_sparse(table)}
    figures: dict[str, Callable[[], Any]] = {
        "diversity": lambda: plot.head_diversity({n: t.layers() for n, t in tables.items()}),
        "previous-token-heads": lambda: plot.head_matrices(_positional(tables)),
    }
    if sparse:
        densities = {name: table.density_histogram() for name, table in sparse.items()}
        records = {name: table.records() for name, table in sparse.items()}
        figures["density-histograms"] = lambda: plot.head_histograms(densities, "density")
        figures["densities-by-layer"] = lambda: plot.head_densities(records)
    for name, table in learned.items():  # a paper has one such model
        courses = alpha_trajectories(models[name].log)
        spread: Any = {name: table.alpha_histogram()}
        figures["alpha-courses"] = lambda courses=courses: plot.alpha_courses(courses)
        figures["alpha-histograms"] = lambda spread=spread: plot.head_histograms(spread, "α")
        for title, panels in (
            ("merging-head", _merging(table)),
            ("one-head-two-sentences", _differing(table)),
        ):
            if panels:
                figures[title] = lambda panels=panels: plot.head_matrices(panels)
    asked = _questions(tables)
    if asked:
        figures["interrogation-heads"] = lambda: plot.head_matrices(asked)
    for title, make in figures.items():
        figure = make()
        write_atomically(folder / f"{title}.png", lambda file, f=figure: f.savefig(file))


def _measurements(experiment: Experiment, table: HeadTable) -> list[Measurement]:
    """The numbers that the paper states of a model, and means of what it draws."""
    records, layers = table.records(), table.layers()
    roles = {each["role"]: each for each in table.roles()}
    measured: dict[str, float | None] = {
        name: roles[role][what] for name, (role, what) in ROLE_FIGURES.items()
    }
    for kind in dict.fromkeys(each["kind"] for each in layers):
        for quantity in ("density", "diversity"):
            values = [each[quantity] for each in layers if each["kind"] == kind]
            known = [value for value in values if value is not None]
            measured[f"{kind} {quantity}"] = fmean(known) if known else None
        alphas = [each["alpha"] for each in records if each["kind"] == kind]
        if len(set(alphas)) > 1:
            measured[f"{kind} lowest alpha"] = min(alphas)
            measured[f"{kind} highest alpha"] = max(alphas)
    return [
        Measurement(row_name(experiment, name), round(value, 4), experiment.paper.get(name))
        for name, value in measured.items()
        if value is not None
    ]


def _numbers(table: HeadTable) -> dict[str, Any]:
    """The table without sentences."""
    parts = table.to_json()
    return {name: parts[name] for name in parts if name not in ("examples", "unsure")}


def _learns(table: HeadTable) -> bool:
    return len({each["alpha"] for each in table.records()}) > 1


def _is_sparse(table: HeadTable) -> bool:
    return any(each["density"] < 1 for each in table.records())


def _positional(tables: Mapping[str, HeadTable]) -> list[HeadPanel]:
    """The head of each model that attends most to the previous token, on one sentence."""
    return [
        panel
        for name, table in tables.items()
        for panel in _panels(name, table, _best(table, "previous_token"), _short(table)[:1])
    ]


def _merging(table: HeadTable) -> list[HeadPanel]:
    """The head that merges subwords best, on the sentences with most subwords."""
    best = _best(table, "split_word_merging", kind="encoder")
    sentences = sorted(
        _short(table), key=lambda each: sum(t[0] != "▁" for t in each.source or "▁"), reverse=True
    )
    return _panels("", table, best, sentences[:2])


def _questions(tables: Mapping[str, HeadTable]) -> list[HeadPanel]:
    """The head of each model that finds question marks, on a question."""
    panels = []
    for name, table in tables.items():
        asked = [each for each in _short(table) if "?" in "".join(each.source or ())]
        if any(each["interrogation"] is not None for each in table.records()):
            panels += _panels(name, table, _best(table, "interrogation"), asked[:1])
    return panels


def _differing(table: HeadTable) -> list[HeadPanel]:
    """Two sentences of equal length on which the density of a head of the encoder differs most."""
    largest, found = 0.0, []
    for record in table.records():
        if record["kind"] == "encoder":
            head = Head("encoder", record["layer"], record["head"])
            by_density = sorted(_short(table), key=lambda each: _density(each, head))
            for sparse, dense in combinations(by_density, 2):
                gap = _density(dense, head) - _density(sparse, head)
                if gap > largest and len(sparse.source or ()) == len(dense.source or ()):
                    largest, found = gap, _panels("", table, head, [sparse, dense])
    return found


def _density(sentence: ExampleSentence, head: Head) -> float:
    weights = sentence.weights[head]
    return float((weights.values() != 0).sum()) / weights.numel()


def _best(table: HeadTable, measure: str, kind: str | None = None) -> Head:
    """The head, of any kind or of one, with the highest value of a measure."""
    records = [
        each
        for each in table.records()
        if each[measure] is not None and kind in (None, each["kind"])
    ]
    best = max(records, key=lambda each: each[measure])
    return Head(best["kind"], best["layer"], best["head"])


def _short(table: HeadTable) -> list[ExampleSentence]:
    """The sentences that fit on a picture."""
    return [each for each in table.examples if SHORTEST <= len(each.source or ()) <= LONGEST]


def _panels(
    name: str, table: HeadTable, head: Head, sentences: Sequence[ExampleSentence]
) -> list[HeadPanel]:
    (record,) = (e for e in table.records() if (e["kind"], e["layer"], e["head"]) == head)
    parts = [name, f"{head.kind} layer {head.layer}, head {head.head}"]
    parts += [] if record["alpha"] is None else [f"α = {record['alpha']:.2f}"]
    title = "\n".join(filter(None, (parts[0], ", ".join(parts[1:]))))
    panels = []
    for sentence in sentences:
        tokens = (sentence.target if head.kind == "decoder" else sentence.source) or ()
        panels.append(HeadPanel(title, tokens, tokens, sentence.rows(*head)))
    return panels
