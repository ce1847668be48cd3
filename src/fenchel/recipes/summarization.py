"""Summaries and headlines: a text to a shorter one, in words that attention picks."""

from __future__ import annotations

from fenchel.recipes.recipe import DataConfig, Recipe, SearchConfig, empty_model
from fenchel.training.config import TrainingConfig


def summarization() -> Recipe:
    """Sentence summarization as Niculae and Blondel (2017), section 4.3, with sparse attention.

    The attention is 1.5-entmax; `--set attention_map=fusedmax` looks at segments of the text.
    """
    return Recipe(
        name="summarization",
        summary="a text to a headline or a short summary, in subwords",
        metric="rouge_l",
        data=DataConfig(format="parallel", segmentation="subwords", merges=8000, joint=True),
        model=empty_model(embedding_size=500, hidden_size=500),
        training=TrainingConfig(epochs=20, batch_size=64),
        search=SearchConfig(width=5, max_length=50),
    )
