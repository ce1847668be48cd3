"""Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*: translation."""

from __future__ import annotations

from fenchel.recipes.reproductions.schedules import TEXT
from fenchel.recipes.reproductions.table import Experiment, Measure, TrainedTable

BASES = 30
# Figure 2, German to English on IWSLT 2017: softmax at the output and in the discrete attention, as in
# the paper's baseline; the density is a Gaussian (softmax) or a truncated parabola (sparsemax).
BLEU = {"discrete softmax": 23.92, "combined softmax": 24.00, "combined sparsemax": 24.25}
CHANGES = {
    "discrete softmax": ("attention_map=softmax",),
    "combined softmax": ("attention_map=combined", "attention_alpha=1"),
    "combined sparsemax": ("attention_map=combined", "attention_alpha=1", "continuous_alpha=2"),
}

FIGURE2 = TrainedTable(
    name="2020-martins/figure2",
    summary="translation with discrete + continuous attention: BLEU (Multi30k for IWSLT 2017)",
    recipe="translation",
    changes=(*TEXT, "output_alpha=1", f"attention_bases={BASES}"),
    dataset="multi30k",
    measures=(Measure("bleu", "bleu"),),
    experiments=tuple(
        Experiment(
            name=name,
            folder=f"multi30k-de-en/{name.replace(' ', '-')}",
            changes=CHANGES[name],
            paper={"bleu": figure},
        )
        for name, figure in BLEU.items()
    ),
)
