"""What the pages about runs hold, whatever their task; tests/cli renders whole pages."""

from __future__ import annotations

from fenchel.analysis.run_report import comparison_table
from fenchel.recipes import make_recipe
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.example import Example
from fenchel.training import Evaluation, Run

CODEC = Codec.fit([Example("ab", "ba")])


def test_runs_are_compared_metric_by_metric(tmp_path):
    runs = {name: Run(tmp_path / name, make_recipe("inflection"), CODEC) for name in ("a", "b")}
    metrics = {
        "a": {"examples": 2, "accuracy": 50.0, "single": None},
        "b": {"examples": 2, "accuracy": 100.0, "single": 25.0},
    }
    found = comparison_table(runs, {name: Evaluation(metrics[name], []) for name in runs})
    assert found.columns == ["metric", "a", "b"]
    rows = {str(row[0]).partition(":")[0]: list(row[1:]) for row in found.rows}
    assert rows == {"accuracy": [50.0, 100.0], "examples": [2, 2], "single": [None, 25.0]}
