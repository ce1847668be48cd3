"""Morphological inflection: lemma and tags to a form, in one language or in many at once."""

from __future__ import annotations

from fenchel.recipes.recipe import DataConfig, Recipe, SearchConfig, empty_model
from fenchel.training.config import TrainingConfig


def inflection() -> Recipe:
    """The 1.5-entmax model of Peters, Niculae and Martins (2019), section 4.1."""
    return Recipe(
        name="inflection",
        summary="a lemma and its tags to the inflected form, letter by letter",
        metric="accuracy",
        data=DataConfig(format="inflection", segmentation="characters"),
        model=empty_model(embedding_size=300, hidden_size=300),
        training=TrainingConfig(epochs=30, batch_size=64, log_every=20),
        search=SearchConfig(width=5, max_length=60),
    )
