"""`fenchel predict` answers files, pipes and people."""

from __future__ import annotations

import io
import json
import sys

import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch):
    """What comes on standard input, from a pipe or from a person."""

    def give(text: str, *, person: bool = False) -> None:
        stream = Terminal(text) if person else io.TextIOWrapper(io.BytesIO(text.encode()))
        monkeypatch.setattr(sys, "stdin", stream)

    return give


def test_standard_input_gives_one_line_an_example(fenchel, run, typed):
    typed("walk\tV;PST\nplay\tV;PRS\n")
    outcome = fenchel("predict", run, "-")
    assert outcome.code == 0
    lines = [line.split("\t") for line in outcome.out.splitlines()]
    assert [line[0] for line in lines] == ["walk V;PST", "play V;PRS"]
    for _, _, probability, proof in lines:
        assert 0 < float(probability) <= 1
        assert proof in ("only", "complete", "best", "unproven")
    assert outcome.err == ""


def test_a_language_that_the_model_does_not_know_of_is_not_shown(fenchel, run, tmp_path):
    (tmp_path / "german-test.tsv").write_text("walk\twalked\tV;PST\n", encoding="utf-8")
    assert fenchel("predict", run, tmp_path / "german-test.tsv").out.startswith("walk V;PST\t")


def test_unknown_symbols_are_reported_and_answered(fenchel, run, typed):
    typed("wørk\tV;FUT\n")
    outcome = fenchel("predict", run, "-")
    assert outcome.code == 0
    assert len(outcome.out.splitlines()) == 1
    assert "line 1: the model does not know '<FUT>', 'ø'" in outcome.err


def test_json_tells_all_answers_and_what_is_proven(fenchel, run, words):
    outcome = fenchel("predict", run, words / "test.tsv", "--json", "--beam", 3)
    objects = [json.loads(line) for line in outcome.out.splitlines()]
    assert len(objects) == 3
    for each in objects:
        probabilities = [answer["probability"] for answer in each["answers"]]
        assert 1 <= len(probabilities) <= 3
        assert probabilities == sorted(probabilities, reverse=True)
        assert each["target"]
        assert {"single", "complete", "certified", "dropped"} <= set(each)


def test_exact_search_proves_and_samples_can_be_repeated(fenchel, run, words):
    proven = fenchel("predict", run, words / "test.tsv", "--exact", "--json")
    assert all(json.loads(line)["certified"] for line in proven.out.splitlines())
    first, again = (
        fenchel("predict", run, words / "test.tsv", "--samples", 4, "--seed", 3).out
        for _ in range(2)
    )
    assert first == again
    assert len(first.splitlines()) == 12
    assert fenchel("predict", run, words / "test.tsv", "--exact", "--samples", 1).code == 2


def test_lattice_and_autocompletion_are_drawn(fenchel, run, typed):
    typed("walk\tV;PST\n")
    drawn = fenchel("predict", run, "-", "--lattice")
    assert drawn.out.startswith("walk V;PST  (")
    assert "■" in drawn.out or "…" in drawn.out
    typed("walk\tV;PST\n")
    completed = fenchel("predict", run, "-", "--autocomplete")
    assert any(line.startswith(("→ ", "? ")) for line in completed.out.splitlines())


@pytest.mark.parametrize("option", ["--lattice", "--autocomplete"])
def test_pictures_are_saved(fenchel, run, words, tmp_path, option):
    path = tmp_path / "picture.svg"
    outcome = fenchel("predict", run, words / "test.tsv", option, "--picture", path)
    assert outcome.code == 0, outcome.err
    assert "<svg" in path.read_text(encoding="utf-8")
    wrong = fenchel("predict", run, words / "test.tsv", option, "--picture", tmp_path / "x.gpx")
    assert wrong.code == 2
    assert "the picture can be written" in wrong.err


def test_a_person_may_type_spaces_and_make_mistakes(fenchel, run, typed):
    typed("walk\n\nwalk V;PST\n", person=True)
    outcome = fenchel("predict", run)
    assert outcome.code == 0
    assert "type lemma tags" in outcome.err
    assert "a line has all its parts" in outcome.err
    assert outcome.out.startswith("walk V;PST\t")
    assert len(outcome.out.splitlines()) == 1


def test_bad_files_are_told(fenchel, run, tmp_path, typed):
    (tmp_path / "bad.tsv").write_bytes(b"walk\tV;PST\n\xff\tV\n")
    for source, message in (
        (tmp_path / "bad.tsv", "line 2: text is UTF-8"),
        (tmp_path, "a folder"),
    ):
        outcome = fenchel("predict", run, source)
        assert outcome.code == 2
        assert message in outcome.err
    typed("")
    assert "at least one line" in fenchel("predict", run, "-").err
