"""The recipe of visual question answering."""

from __future__ import annotations

from fenchel.tasks.visual_questions import VisualQuestionTask
from fenchel.training import Recipe, TrainingConfig


def visual_questions() -> Recipe[VisualQuestionTask]:
    """A small co-attention network that trains within minutes on a CPU.

    The network of Martins et al. (2020), section 4, is `--set grid=14 --set hidden_size=512
    --set feedforward_size=2048 --set layers=6 --set heads=8 --set attention_map=softmax
    --set attention=moments --set basis_width=0.0316`.
    """
    training = TrainingConfig(
        epochs=10, learning_rate=5e-4, schedule="cosine", warmup_steps=100, beta2=0.98, log_every=10
    )
    return Recipe(
        name="vqa",
        summary="an image and a question to an answer, with attention over both",
        task=VisualQuestionTask(),
        training=training,
    )


SMALL = ("layers=1", "embedding_size=64", "hidden_size=64", "feedforward_size=256")
