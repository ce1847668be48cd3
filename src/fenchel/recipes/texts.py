"""The recipes of text classification and of natural-language inference."""

from __future__ import annotations

from fenchel.tasks.texts.documents import DocumentTask
from fenchel.tasks.texts.nli import EntailmentTask
from fenchel.training import Recipe, TrainingConfig


def documents() -> Recipe[DocumentTask]:
    """A classifier that trains within minutes on a CPU; `--set encoder=lstm` is the paper's.

    The attention is that of Martins et al. (2020), section 4, with 1.5-entmax.
    """
    return Recipe(
        name="documents",
        summary="a text to its label, with attention over its words",
        task=DocumentTask(),
        training=TrainingConfig(epochs=3, batch_size=32, schedule="cosine", log_every=10),
    )


def nli() -> Recipe[EntailmentTask]:
    """The model of Martins & Astudillo (2016), section 4.3, with 1.5-entmax and fewer epochs."""
    return Recipe(
        name="nli",
        summary="a premise and a hypothesis to their label, with attention over the premise",
        task=EntailmentTask(),
        training=TrainingConfig(
            epochs=8, batch_size=64, learning_rate=2e-3, schedule="cosine", log_every=10
        ),
    )


SMALL = ("vocabulary=5000", "max_words=200", "embedding_size=64", "hidden_size=64")
SMALL_NLI = ("vocabulary=5000", "max_words=40", "embedding_size=64", "hidden_size=64")
