"""The figures of a run on some examples: what its answers are worth, and how sparse it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fenchel.data import Encoded, Example
from fenchel.recipes.running import Trained
from fenchel.search import Answer
from fenchel.training import Run, measure, predict, score
from fenchel.training.files import save_json
from fenchel.training.lock import alone_with

Figures = dict[str, Any]


def figures_of(
    trained: Trained,
    examples: Sequence[Example],
    *,
    width: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> tuple[Figures, list[Answer]]:
    """The figures and the answers.

    The main figure is under `accuracy`, `bleu` or `rouge_l`; shares and accuracies are in percent.
    `attention_support` and `output_support` are means over the symbols of the right answers,
    `token_accuracy` the share of them that are the model's first choice.
    """
    run, search = trained.run, trained.recipe.search
    device = best_device()
    answers = predict(
        run,
        None,
        examples,
        width=width or search.width,
        batch_size=search.sentences,
        max_length=search.max_length,
        device=device,
        progress=progress,
    )
    figures = score(answers, examples, run.codec, trained.recipe.metric).state()
    told = measure(run.model, Encoded.of(examples, run.codec).to(device))
    figures |= {name: told[name] for name in ("attention_support", "output_support", "loss")}
    figures["token_accuracy"] = 100 * told["accuracy"]
    return figures, answers


def keep_figures(run: Run, split: str, figures: Figures) -> None:
    """Add the figures to those that the run's folder holds; what validation wrote stays.

    Several processes may do so at once.
    """
    with alone_with(run.metrics_path):
        save_json(run.metrics_path, {**run.metrics, f"{split}_search": figures})


def best_device() -> torch.device:
    """A GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
