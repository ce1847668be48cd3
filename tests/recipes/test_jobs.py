"""Metrics of a run are reused as long as the sources are the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fenchel.recipes import make_recipe
from fenchel.recipes.reproductions import jobs
from fenchel.training import Evaluation, Splits


def test_metrics_are_reused_for_the_same_sources_only(monkeypatch: pytest.MonkeyPatch):
    stored, computed = {}, []

    def evaluate(*_) -> Evaluation:
        computed.append(1)
        return Evaluation({"bleu": 1.0}, [])

    run: Any = SimpleNamespace(
        metrics=stored,
        task=SimpleNamespace(evaluate=evaluate),
        save_metrics=lambda name, metrics: stored.update({name: metrics}),
    )
    monkeypatch.setattr(jobs, "commit", lambda: "c0ffee")
    recipe = make_recipe("translation")
    for digest, times in (("a", 1), ("a", 1), ("b", 2), ("b", 2)):
        monkeypatch.setattr(jobs, "source_digest", lambda digest=digest: digest)
        key = jobs._evaluation_key(recipe)
        found = jobs._evaluate(run, Splits([], []), "dev", key)
        assert (found["bleu"], found["sources"], len(computed)) == (1.0, digest, times)
