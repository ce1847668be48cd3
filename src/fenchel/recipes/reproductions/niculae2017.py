"""Niculae and Blondel (2017), *A Regularized Framework for Sparse and Structured Neural Attention*."""

from __future__ import annotations

from fenchel.recipes.reproductions.martins2016 import LINGNLI, inference
from fenchel.recipes.reproductions.tables import (
    TEXT_SCHEDULE,
    Experiment,
    Measure,
    TrainedTable,
)

# Table 2, ROUGE-1, ROUGE-2 and ROUGE-L on Gigaword, replaced here by the titles of Reuters-21578.
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
    # With the bilinear scores of the paper, sparse maps collapse to one or two words early in training on
    # this small data set. Additive scores are bounded and avoid this.
    overrides=(*TEXT_SCHEDULE, "output_alpha=1", "attention=additive"),
    dataset="reuters21578",
    measures=tuple(Measure(key, key) for key in ROUGE),
    experiments=tuple(
        Experiment(
            name=map,
            folder=f"reuters21578/{map}",
            overrides=(f"attention_map={map}",),
            paper=dict(zip(ROUGE, figures, strict=True)),
        )
        for map, figures in GIGAWORD.items()
    ),
)

# Table 1: accuracy on the test set of SNLI. The other attentions are not in the paper's table.
SNLI = {"softmax": 81.66, "sparsemax": 82.39, "fusedmax": 82.41, "oscarmax": 81.76}
INFERENCE = TrainedTable(
    **LINGNLI,
    name="2017-niculae/table1",
    summary="inference: accuracy on SNLI of all attentions (trained on LingNLI)",
    experiments=(
        inference("none", {}),
        inference("logistic", {}),
        *(inference(map, {"snli-test": figure}) for map, figure in SNLI.items()),
        inference("entmax", {}, name="1.5-entmax"),
        inference("entmax", {}, "attention_alpha=learned", name="learned entmax"),
    ),
)
