"""A task so small that it is learnt within seconds: words of two letters, the first of them doubled.

As a program it trains into a folder, so that it can be killed: `python small.py FOLDER '{"epochs": 3}'`.
It never ends by itself, however late it is killed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fenchel.models import Seq2SeqConfig
from fenchel.tasks.sequences import Seq2SeqTask
from fenchel.tasks.sequences.example import Example
from fenchel.training import Recipe, RunResult, Splits, TrainingConfig, fit
from fenchel.training.progress import ValidationRecord

LETTERS = "abcdef"
EXAMPLES = [
    Example(a + b, a + a + b, group="low" if a < "d" else "high") for a in LETTERS for b in LETTERS
]
DEV = EXAMPLES[3::4]
TRAIN = 4 * [example for example in EXAMPLES if example not in DEV]
SPLITS = Splits(TRAIN, DEV)
MODEL = Seq2SeqConfig(embedding_size=32, hidden_size=32, layers=1, dropout=0.1)
CODEC = Seq2SeqTask().fit_processor(TRAIN)
TASK = Seq2SeqTask(model=MODEL).sized(CODEC)
TRAINING: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 8,
    "learning_rate": 0.02,
    "accelerator": "cpu",
    "devices": 1,
    "log_every": 2,
}


def small_recipe(model: Seq2SeqConfig = MODEL, **training: Any) -> Recipe[Seq2SeqTask]:
    """The recipe with another model or other settings of training."""
    config = TrainingConfig(**{**TRAINING, **training})
    return Recipe("small", "the first letter doubled", Seq2SeqTask(model=model), config)


def fit_small(
    folder: Path,
    *,
    model: Seq2SeqConfig = MODEL,
    on_validation: Callable[[ValidationRecord], None] | None = None,
    **training: Any,
) -> RunResult:
    """Train the recipe into a folder."""
    return fit(folder, small_recipe(model, **training), SPLITS, on_validation=on_validation)


def fit_until_killed(folder: Path, *, epochs: int, **training: Any) -> None:
    """Train, but wait in the last validation, before the checkpoint that would end the run."""

    def wait(record: ValidationRecord) -> None:
        while record["epoch"] == epochs:
            time.sleep(1)

    fit_small(folder, on_validation=wait, epochs=epochs, **training)


if __name__ == "__main__":
    fit_until_killed(Path(sys.argv[1]), **json.loads(sys.argv[2]))
