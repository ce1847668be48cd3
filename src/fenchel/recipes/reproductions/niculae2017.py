"""Niculae and Blondel (2017), *A Regularized Framework for Sparse and Structured Neural Attention*."""

from __future__ import annotations

from fenchel.recipes.reproductions.schedules import TEXT
from fenchel.recipes.reproductions.table import Experiment, Measure, TrainedTable

# Table 2, Gigaword, which the titles of Reuters-21578 stand in for: ROUGE-1, ROUGE-2, ROUGE-L.
GIGAWORD = {
    "softmax": (35.13, 17.15, 32.92),
    "sparsemax": (36.04, 17.78, 33.64),
    "fusedmax": (36.09, 17.62, 33.69),
    "oscarmax": (35.36, 17.23, 33.03),
    "pnormmax": (35.94, 17.75, 33.66),
}
ROUGE = ("rouge_1", "rouge_2", "rouge_l")

HEADLINES = TrainedTable(
    name="2017-niculae/table2",
    summary="headlines: ROUGE of the five attention maps (Reuters-21578 for Gigaword)",
    recipe="summarization",
    # With the paper's bilinear scores the sparse maps fall to a word or two before these few examples
    # have taught them where to look; additive scores are bounded.
    changes=(*TEXT, "output_alpha=1", "attention=additive"),
    dataset="reuters21578",
    measures=tuple(Measure(key, key) for key in ROUGE),
    experiments=tuple(
        Experiment(
            name=map,
            folder=f"reuters21578/{map}",
            changes=(f"attention_map={map}",),
            paper=dict(zip(ROUGE, figures, strict=True)),
        )
        for map, figures in GIGAWORD.items()
    ),
)
