"""Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*: texts and visual questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fenchel.recipes.reproductions.martins2016 import GLOVE
from fenchel.recipes.reproductions.tables import (
    TEXT_SCHEDULE,
    Experiment,
    Measure,
    TimedTable,
    TrainedTable,
)

BASES = 30
# Figure 2, German to English on IWSLT 2017: softmax at the output and in the discrete attention, as in
# the paper's baseline; the density is a Gaussian (softmax) or a truncated parabola (sparsemax).
BLEU = {"discrete softmax": 23.92, "combined softmax": 24.00, "combined sparsemax": 24.25}
OVERRIDES = {
    "discrete softmax": ("attention_map=softmax",),
    "combined softmax": ("attention_map=combined", "attention_alpha=1"),
    "combined sparsemax": ("attention_map=combined", "attention_alpha=1", "continuous_alpha=2"),
}

FIGURE2 = TrainedTable(
    name="2020-martins/figure2",
    summary="translation with discrete + continuous attention: BLEU (Multi30k for IWSLT 2017)",
    recipe="translation",
    overrides=(*TEXT_SCHEDULE, "output_alpha=1", f"attention_bases={BASES}"),
    dataset="multi30k",
    measures=(Measure("bleu", "bleu"),),
    experiments=tuple(
        Experiment(
            name=name,
            folder=f"multi30k-de-en/{name.replace(' ', '-')}",
            overrides=OVERRIDES[name],
            paper={"bleu": figure},
        )
        for name, figure in BLEU.items()
    ),
)

# Table 1, accuracy on IMDB, by the number of basis functions and the α of the density.
DISCRETE = {"softmax": 90.78, "sparsemax": 90.58}
REVIEWS = {
    "continuous": {
        32: {"softmax": 90.20, "sparsemax": 90.52},
        64: {"softmax": 90.68, "sparsemax": 89.63},
        128: {"softmax": 90.52, "sparsemax": 90.90},
    },
    "combined": {
        32: {"softmax": 90.98, "sparsemax": 91.10},
        64: {"softmax": 90.69, "sparsemax": 91.18},
        128: {"softmax": 89.62, "sparsemax": 90.98},
    },
}
ALPHAS = {"softmax": 1, "sparsemax": 2}
ATTENTIONS = {"continuous": "pooled", "combined": "combined"}


def _review(name: str, *overrides: str, paper: float) -> Experiment:
    folder = f"imdb/{name.replace(', N = ', '-').replace(' ', '-')}"
    return Experiment(name, folder, overrides, {"accuracy": paper})


IMDB: dict[str, Any] = {
    "recipe": "documents",
    # So that a run takes minutes on one core: GloVe vectors of 50 dimensions, which are trained too, for
    # frozen ones of 300, a convolution for the biLSTM, and two epochs with batches of 64.
    "overrides": (
        "embedding_size=50",
        "hidden_size=64",
        "vocabulary=30000",
        "model.dropout=0.4",
        "ridge_penalty=0.01",
        "training.batch_size=64",
        "learning_rate=0.003",
        "epochs=2",
        "threads=1",
    ),
    "dataset": "imdb",
    "experiments": (
        *(
            _review(f"discrete {map}", f"attention_map={map}", paper=figure)
            for map, figure in DISCRETE.items()
        ),
        *(
            _review(
                f"{kind} {map}, N = {count}",
                f"attention={ATTENTIONS[kind]}",
                "attention_map=softmax",  # of the discrete attention, if there is one
                f"attention_bases={count}",
                f"continuous_alpha={ALPHAS[map]}",
                paper=figure,
            )
            for kind, by_count in REVIEWS.items()
            for count, by_map in by_count.items()
            for map, figure in by_map.items()
        ),
    ),
}
TABLE1 = TrainedTable(
    **IMDB,
    name="2020-martins/table1",
    summary="reviews (IMDB): accuracy of discrete, continuous and combined attention",
    files={"embeddings": GLOVE},
    measures=(Measure("accuracy", "accuracy"),),
    ensembles=False,
)
UNSCORED: dict[str, Any] = {
    **IMDB,
    "experiments": tuple(replace(each, paper={}) for each in IMDB["experiments"]),
}
TABLE1_SPEEDS = TimedTable(
    **UNSCORED,
    name="2020-martins/table1-speed",
    summary="reviews (IMDB): training speed relative to discrete attention",
)

# Table 2, overall accuracy on the test-dev set of VQA-v2: the last attention to the image.
QUESTIONS = {"discrete softmax": 65.83, "continuous softmax": 65.96, "continuous sparsemax": 65.79}
LAST_ATTENTION = {
    "discrete softmax": ("attention=discrete",),
    "continuous softmax": ("attention=moments", "continuous_alpha=1"),
    "continuous sparsemax": ("attention=moments", "continuous_alpha=2"),
}
ANSWER_MEASURES = (
    Measure("accuracy", "accuracy"),
    Measure("WUPS at 0.9", "wups"),
    Measure("WUPS at 0", "wups_0"),
)
# In place of six layers of size 512 over 14 × 14 cells: one layer of size 128 over 7 × 7 cells, so that a
# run takes minutes. The discrete attention, and the one that gives the moments, is softmax.
ON_DAQUAR = (
    "attention_map=softmax", "layers=1", "feedforward_size=256", "epochs=6", "threads=1",
)  # fmt: skip
ON_EASY_VQA = (
    "attention_map=softmax", "layers=1", "task.grid=4", "hidden_size=64", "embedding_size=64",
    "feedforward_size=128", "attention_bases=49", "basis_width=0.15", "learning_rate=0.001",
    "epochs=6", "threads=1",
)  # fmt: skip


def _answered(dataset: str, name: str, **paper: float) -> Experiment:
    return Experiment(name, f"{dataset}/{name.replace(' ', '-')}", LAST_ATTENTION[name], paper)


DAQUAR: dict[str, Any] = {"recipe": "vqa", "overrides": ON_DAQUAR, "dataset": "daquar"}
TABLE2 = TrainedTable(
    **DAQUAR,
    name="2020-martins/table2",
    summary="visual questions: discrete and continuous attention (DAQUAR for VQA-v2)",
    measures=ANSWER_MEASURES,
    ensembles=False,
    experiments=tuple(
        _answered("daquar", name, accuracy=figure) for name, figure in QUESTIONS.items()
    ),
)
TABLE2_EASY = TrainedTable(
    name="2020-martins/table2-easy-vqa",
    summary="visual questions: discrete and continuous attention (easy-VQA for VQA-v2)",
    recipe="vqa",
    overrides=ON_EASY_VQA,
    dataset="easy_vqa",
    measures=ANSWER_MEASURES[:1],
    ensembles=False,
    experiments=tuple(_answered("easy_vqa", name) for name in QUESTIONS),
)
TABLE2_SPEEDS = TimedTable(
    **DAQUAR,
    name="2020-martins/table2-speed",
    summary="visual questions: training speed relative to discrete attention (DAQUAR)",
    experiments=tuple(_answered("daquar", name) for name in QUESTIONS),
)
