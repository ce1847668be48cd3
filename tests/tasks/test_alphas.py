"""The learned α of every model is in the log of its training and in its charts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fenchel.data.texts import Document
from fenchel.recipes import make_recipe
from fenchel.report import read_log
from fenchel.tasks.alphas import alpha_charts
from fenchel.training import RunResult, Splits, fit
from tests.training.small import MODEL, fit_small

SMALL = ["embedding_size=4", "hidden_size=4", "accelerator=cpu", "threads=1", "log_every=1"]
SMALL += ["min_count=1", "epochs=2", "training.batch_size=2"]


def fit_sequences(folder: Path, alpha: str | float) -> RunResult:
    return fit_small(folder, model=replace(MODEL, attention_alpha=alpha), epochs=2)


def fit_documents(folder: Path, alpha: str | float) -> RunResult:
    recipe = make_recipe("documents", [*SMALL, f"attention_alpha={alpha}"])
    documents = [Document("a superb film", "good"), Document("a mess of a film", "bad")] * 4
    return fit(folder, recipe, Splits(documents, documents))


@pytest.mark.parametrize("fit_one", [fit_sequences, fit_documents])
def test_the_learned_alpha_is_part_of_every_validation(fit_one, tmp_path):
    result = fit_one(tmp_path / "run", "learned")
    alphas = [record["alpha.attention"] for record in result.history]
    assert len(set(alphas)) == 2
    assert all(1 < alpha < 2 for alpha in alphas)
    task, log = result.run.task, read_log(result.run.log_path)
    assert f"alpha {alphas[-1]:.2f}" in task.describe_means(result.history[-1])
    (chart,) = alpha_charts(log)
    assert chart in task.training_charts(log)
    assert chart.series == {"alpha": [(1.0, alphas[0]), (2.0, alphas[1])]}


@pytest.mark.parametrize("fit_one", [fit_sequences, fit_documents])
def test_a_fixed_alpha_is_not(fit_one, tmp_path):
    result = fit_one(tmp_path / "run", 1.5)
    assert not any(name.startswith("alpha") for name in result.history[-1])
    assert alpha_charts(read_log(result.run.log_path)) == []


def test_every_layer_has_a_chart_with_a_line_per_head():
    log = {
        f"alpha.{kind}.{layer}.{head}": [(1.0, 1.5)]
        for kind in ("encoder", "context")
        for layer in range(2)
        for head in range(3)
    }
    charts = alpha_charts({"loss": [(1.0, 2.0)], **log})
    assert [chart.caption for chart in charts] == [
        "Learned alpha: encoder, layer 0",
        "Learned alpha: encoder, layer 1",
        "Learned alpha: context, layer 0",
        "Learned alpha: context, layer 1",
    ]
    assert all(list(chart.series) == ["head 0", "head 1", "head 2"] for chart in charts)
