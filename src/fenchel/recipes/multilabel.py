"""The recipe of multi-label classification."""

from __future__ import annotations

from fenchel.tasks.multilabel import MultilabelTask
from fenchel.training import Recipe, TrainingConfig


def multilabel() -> Recipe[MultilabelTask]:
    """A linear model with the sparsemax loss; `--set loss=softmax` and others are its baselines.

    The model and its rule are those of Martins & Astudillo (2016), section 4.2.
    """
    return Recipe(
        name="multilabel",
        summary="a text or numbers to several labels, and how much of each",
        task=MultilabelTask(),
        training=TrainingConfig(epochs=500, monitor="f1_micro"),
    )


# Linear models train within minutes anyway.
SMALL = ("vocabulary=5000",)
