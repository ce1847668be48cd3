"""A task so small that it is learnt within seconds: words of two letters, the first of them doubled.

As a program it trains into a folder, so that it can be killed: `python small.py FOLDER '{"epochs": 3}'`.
It never comes to the end by itself, however late it is killed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from fenchel.data import Codec, Example
from fenchel.models import Seq2SeqConfig
from fenchel.training import RunResult, TrainingConfig, fit
from fenchel.training.progress import Record

LETTERS = "abcdef"
EXAMPLES = [
    Example(a + b, a + a + b, group="low" if a < "d" else "high") for a in LETTERS for b in LETTERS
]
DEV = EXAMPLES[3::4]
TRAIN = 4 * [example for example in EXAMPLES if example not in DEV]
CODEC = Codec.fit(EXAMPLES)
MODEL = Seq2SeqConfig(4, 4, embedding_size=32, hidden_size=32, layers=1, dropout=0.1)
TRAINING: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 8,
    "learning_rate": 0.02,
    "accelerator": "cpu",
    "devices": 1,
    "log_every": 2,
}


def fit_small(folder: Path, *, report: Any = None, **changes: Any) -> RunResult:
    config = TrainingConfig(**{**TRAINING, **changes})
    return fit(folder, MODEL, config, CODEC, TRAIN, DEV, report=report, recipe={"name": "small"})


def fit_until_killed(folder: Path, *, epochs: int, **changes: Any) -> None:
    """Train, but wait in the last validation, before the checkpoint that would end the run."""

    def wait(record: Record) -> None:
        while record["epoch"] == epochs:
            time.sleep(1)

    fit_small(folder, report=wait, epochs=epochs, **changes)


if __name__ == "__main__":
    fit_until_killed(Path(sys.argv[1]), **json.loads(sys.argv[2]))
