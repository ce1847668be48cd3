"""The benchmark of searches: both operations find the same, and a sample represents all sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import fenchel
from benchmarks import __main__ as command
from benchmarks import problems, searching
from benchmarks.inputs import make_inputs
from benchmarks.peers import OPERATIONS
from benchmarks.problems import Case, cpu_cases, gpu_cases
from benchmarks.rows import read
from benchmarks.runner import Effort, measure_case
from benchmarks.searching import BATCHED, ONE_BY_ONE, check_same
from fenchel.search import Answer


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "SIZE", 16)
    monkeypatch.setattr(searching, "STEPS", 3)
    monkeypatch.setattr(searching, "LONGEST", 5)
    monkeypatch.setattr(searching, "USUAL", (0.0, 5.0))


def _answers(count: int) -> list[Answer]:
    model, data = searching.inflection_model("cpu", 16, 3), searching.sentences(count)
    return searching.search(model, data, range(count))


def test_two_sizes_of_batches_are_asked_for():
    for cases in (cpu_cases(), gpu_cases([])):
        shapes = [(c.rows, c.width) for c in cases if c.family == "search"]
        assert shapes == [(256, 5), (1024, 5)]
    assert not [c for c in cpu_cases(640) if c.family == "search"]


def test_the_time_of_a_sample_is_taken_for_all(monkeypatch: pytest.MonkeyPatch):
    class Clock:
        def time(self, step) -> float:
            return 0.001 * len(step())

    chosen = [replace(OPERATIONS["search", ONE_BY_ONE], sample=1), OPERATIONS["search", BATCHED]]
    measured = measure_case(Case("search", 3, 15, width=5), chosen, Clock(), Effort(rounds=1))
    assert [set(each.times) for each in measured] == [{0.003}, {0.003}]


def test_a_sample_that_is_answered_otherwise_is_an_error(monkeypatch: pytest.MonkeyPatch):
    answers = _answers(3)
    check_same(answers, _answers(3))
    less = replace(answers[1], hypotheses=answers[1].hypotheses[1:])
    with pytest.raises(fenchel.FenchelError, match="the answer to sentence 1"):
        check_same([answers[0], less, answers[2]], answers)
    best = answers[0].best
    moved = replace(best, probability=best.probability + 2e-5)
    changed = replace(answers[0], hypotheses=(moved, *answers[0].hypotheses[1:]))
    with pytest.raises(fenchel.FenchelError, match="differences must be at most 1e-05"):
        check_same([changed, *answers[1:]], answers)
    search = searching.search

    def wrong_in_batches(model, data, places) -> list[Answer]:
        found = search(model, data, places)
        return [less] * len(found) if len(places) > 1 else found

    monkeypatch.setattr(searching, "search", wrong_in_batches)
    with pytest.raises(fenchel.FenchelError, match="must not depend on its batch"):
        OPERATIONS["search", ONE_BY_ONE].build(make_inputs(Case("search", 2, 10)), backward=False)


def test_answers_of_unusual_lengths_are_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(searching, "USUAL", (5.5, 20.0))
    with pytest.raises(fenchel.FenchelError, match="answers must have"):
        searching.check_usual(_answers(2))


def test_the_command_tells_sentences_a_second(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(problems, "SENTENCES", (64,))
    command.main(["--quick", "--only", "search", "--out", str(tmp_path)])
    rows = read(tmp_path / "cpu-quick.csv")
    assert {(row.operation, row.rows) for row in rows} == {(ONE_BY_ONE, 4), (BATCHED, 4)}
    assert "Sentences a second" in (tmp_path / "cpu-quick.md").read_text()
