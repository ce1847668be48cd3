"""Martins and Astudillo (2016), *From Softmax to Sparsemax*."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fenchel.recipes.reproductions.proportions import SimulatedTable, Simulation
from fenchel.recipes.reproductions.tables import Experiment, Measure, TrainedTable

# Table 3: accuracy on the development and the test set of SNLI. Our models are trained on LingNLI, a
# twelfth of the training pairs of SNLI. With frozen vectors they learn hardly anything from so few pairs.
SNLI = {
    "none": (81.84, 80.99),
    "logistic": (82.11, 80.84),
    "softmax": (82.86, 82.08),
    "sparsemax": (82.52, 82.20),
}
SELECTED = {"sparsemax": {"attended": 24.6}}  # % of the premise words of SNLI's development set
GLOVE = ("glove50/glove.6B.50d.top100k.f16.npz", "glove.6B.50d.txt")
LINGNLI: dict[str, Any] = {
    "recipe": "nli",
    "overrides": (
        "embedding_size=50",
        "hidden_size=64",
        "model.dropout=0.3",
        "max_words=40",
        "training.batch_size=64",
        "learning_rate=0.004",
        "epochs=3",
        "threads=1",
    ),
    "dataset": "lingnli",
    "files": {"embeddings": GLOVE},
    "measures": (
        Measure("lingnli", "accuracy"),
        Measure("snli-dev", "accuracy", "snli-dev"),
        Measure("snli-test", "accuracy", "snli-test"),
        Measure("attended", "attention_share", "snli-dev"),
    ),
    "ensembles": False,
}


def inference(map: str, paper: Mapping[str, float], *overrides: str, name: str = "") -> Experiment:
    """A model of inference with a map, for the tables of both papers."""
    name = name or map
    return Experiment(
        name=name,
        folder=f"lingnli/{name.replace(' ', '-')}",
        overrides=(f"attention_map={map}", *overrides),
        paper=paper,
    )


TABLE3 = TrainedTable(
    **LINGNLI,
    name="2016-martins/table3",
    summary="inference: accuracy on SNLI of four attentions (trained on LingNLI)",
    experiments=tuple(
        inference(map, {"snli-dev": dev, "snli-test": test} | SELECTED.get(map, {}))
        for map, (dev, test) in SNLI.items()
    ),
)

# Table 2, micro and macro F1. The latter is taken as F1 of the precision and the recall that are averaged
# over labels: with it, the two figures of softmax on emotions come out exactly.
F1 = {
    "scene": {"logistic": (70.96, 72.95), "softmax": (74.01, 75.03), "sparsemax": (73.45, 74.57)},
    "emotions": {
        "logistic": (66.75, 68.56),
        "softmax": (67.34, 67.51),
        "sparsemax": (66.38, 66.07),
    },
    "birds": {"logistic": (45.78, 33.77), "softmax": (48.67, 37.06), "sparsemax": (49.44, 39.13)},
    "cal500": {"logistic": (48.88, 24.49), "softmax": (47.46, 23.51), "sparsemax": (48.47, 26.20)},
    "reuters": {"logistic": (81.19, 60.02), "softmax": (79.47, 56.30), "sparsemax": (80.00, 61.27)},
}
LOSSES = {
    "logistic": ("loss=logistic",),
    "softmax": ("loss=softmax",),
    "sparsemax": ("loss=sparsemax",),
    "1.5-entmax": ("loss=entmax", "alphas=1.5"),
}
MEASURES = {
    "micro F1": ("f1_micro", ("micro F1",)),
    "macro F1": ("f1_of_means", ("macro F1", "mean F1 of labels")),
}
"""The monitored metric of a model that is tuned for a measure, and the measures that are read off it."""


def _experiment(dataset: str, loss: str, measure: str) -> Experiment:
    monitor, measures = MEASURES[measure]
    figures = dict(zip(MEASURES, F1[dataset].get(loss, ()), strict=False))
    is_reuters = dataset == "reuters"
    return Experiment(
        name=f"{dataset}, {loss}",
        folder=f"{dataset}/{loss}-{monitor}",
        overrides=(*LOSSES[loss], f"monitor={monitor}"),
        paper={measure: figures[measure]} if figures else {},
        dataset="reuters21578" if is_reuters else "mulan",
        options={} if is_reuters else {"set": dataset},
        measures=measures,
    )


TABLE2 = TrainedTable(
    name="2016-martins/table2",
    summary="label sets: F1 of linear models with four losses (Reuters-21578 for RCV1)",
    recipe="multilabel",
    overrides=(
        "epochs=100",
        f"penalties={','.join(f'1e{exponent}' for exponent in range(-8, 3))}",
        "threads=1",
    ),
    measures=(
        Measure("micro F1", "f1_micro"),
        Measure("macro F1", "f1_of_means"),
        Measure("mean F1 of labels", "f1_macro"),
    ),
    experiments=tuple(
        _experiment(dataset, loss, measure)
        for dataset in F1
        for loss in LOSSES
        for measure in MEASURES
    ),
)

SIMULATIONS = {
    f"{labels} labels, {mixture}, {length} words": Simulation(labels, length, mixture)
    for labels in (10, 50)
    for mixture in ("uniform", "random")
    for length in range(200, 2001, 200)
}

FIGURE3 = SimulatedTable(
    name="2016-martins/figure3",
    summary="label proportions: errors of linear models on simulated documents",
    simulations=SIMULATIONS,
    experiments=tuple(Experiment(name=name, folder=name, overrides=()) for name in SIMULATIONS),
)
