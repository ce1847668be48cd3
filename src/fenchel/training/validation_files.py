"""The files written after a validation: weights and metrics of the best model, and the log."""

from __future__ import annotations

import csv
import io

from torch import nn

from fenchel.training.files import save_json, save_tensors, write_atomically
from fenchel.training.lock import exclusive_access
from fenchel.training.progress import ValidationRecord
from fenchel.training.run import Run

NOT_REPRODUCIBLE = {"seconds"}  # differs between two runs of the same seed


def save_best(run: Run, model: nn.Module, record: ValidationRecord) -> None:
    """Write the weights and the metrics of the best validation; metrics of others are removed."""
    save_tensors(run.weights_path, model.state_dict())
    best = {name: value for name, value in record.items() if name not in NOT_REPRODUCIBLE}
    with exclusive_access(run.metrics_path):
        save_json(run.metrics_path, {"dev": best})


def write_log(run: Run, history: list[ValidationRecord]) -> None:
    """Write `log.csv`, one row per validation."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for record in history for name in record))
    rows = csv.DictWriter(text, names, lineterminator="\n")
    rows.writeheader()
    rows.writerows(history)
    write_atomically(run.log_path, lambda file: file.write(text.getvalue().encode()))
