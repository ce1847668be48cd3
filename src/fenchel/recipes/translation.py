"""Translation between two languages, in subwords."""

from __future__ import annotations

from fenchel.recipes.recipe import DataConfig, Recipe, SearchConfig, empty_model
from fenchel.training.config import TrainingConfig


def translation() -> Recipe:
    """The 1.5-entmax model of Peters, Niculae and Martins (2019), section 4.2, with fewer merges.

    The paper merges 32,000 times on 200,000 sentences or more; 8,000 suit the smaller sets that
    a person is likely to have, and `--set merges=32000` is the paper's.
    """
    return Recipe(
        name="translation",
        summary="sentences of one language to another, in subwords",
        metric="bleu",
        data=DataConfig(format="parallel", segmentation="subwords", merges=8000, joint=True),
        model=empty_model(embedding_size=500, hidden_size=500),
        training=TrainingConfig(epochs=20, batch_size=64),
        search=SearchConfig(width=5, max_length=120),
    )
