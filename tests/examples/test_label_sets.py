"""The example of label sets searches a grid and predicts proportions."""

from __future__ import annotations

import runpy

import pytest

pytest.importorskip("sklearn")

from tests.pages import ROOT


def test_the_example_finds_topics(capsys):
    example = runpy.run_path(str(ROOT / "examples" / "label_sets.py"))
    search = example["main"]()
    assert search.best_score_ > 0.9
    chosen, score, *news = capsys.readouterr().out.splitlines()
    assert chosen.startswith("chosen: {'labels__C': ")
    assert score.startswith("new texts: ")
    assert len(news) == 2
