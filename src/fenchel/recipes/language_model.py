"""The recipe of language models."""

from __future__ import annotations

from fenchel.models.transformer import LanguageModelConfig
from fenchel.tasks.language_model import LanguageModelTask
from fenchel.training import Recipe, TrainingConfig


def language_model() -> Recipe[LanguageModelTask]:
    """A decoder-only Transformer whose heads learn their α, with softmax at the output.

    `--set output_alpha=1.5` learns sparse probabilities, `--set block_size=256` reads running text.
    """
    return Recipe(
        name="language-model",
        summary="each symbol of a text from those before it, with a Transformer",
        task=LanguageModelTask(model=LanguageModelConfig()),
        training=TrainingConfig(
            epochs=20,
            batch_size=1024,
            batch_tokens=8192,
            learning_rate=7e-4,
            beta2=0.98,
            schedule="inverse-sqrt",
            warmup_steps=4000,
            monitor="loss",
        ),
    )


# For minutes on a CPU instead of hours.
SMALL = (
    "hidden_size=128",
    "heads=4",
    "layers=2",
    "feedforward_size=512",
    "merges=2000",
    "batch_tokens=2048",
    "learning_rate=0.003",
    "warmup_steps=500",
)
