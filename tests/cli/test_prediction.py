"""`fenchel predict` answers files, pipes and people."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.console import Console
from rich.text import Text

from tests.cli.conftest import settings


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
    assert outcome.err.startswith("the model does not know '<FUT>', 'ø'")


def test_an_accent_without_its_letter_is_named(fenchel, run, typed):
    typed("wal\u0308k\tV;PST\n")  # no letter of Unicode is an l with this accent
    assert fenchel("predict", run, "-").err.endswith("not know U+0308 COMBINING DIAERESIS\n")


def test_of_many_unknown_symbols_some_are_told(fenchel, run, typed):
    typed("walk\tV;PST\n" + "wålk\tV;PST\n" * 13)
    told = fenchel("predict", run, "-").err.splitlines()
    assert told[0] == "example 2 (wålk): the model does not know 'å'"
    assert told[10:] == ["3 more examples have unknown symbols"]


def test_only_the_best_answer_is_called_best(fenchel, run, words):
    outcome = fenchel("predict", run, words / "test.tsv", "--exact", "--answers", 2)
    lines = [line.split("\t") for line in outcome.out.splitlines()]
    assert [line[-1] for line in lines] == ["best", "unproven"] * 3
    for first, second in zip(lines[::2], lines[1::2], strict=True):
        assert float(first[2]) > float(second[2])


def test_as_many_answers_as_wished_are_sought(fenchel, run, words):
    assert len(fenchel("predict", run, words / "test.tsv", "--answers", 6).out.splitlines()) == 18


def test_what_was_asked_stays_on_one_line(fenchel, run, typed):
    typed('{"lemma": "wa\\tl\\nk", "tags": "V;PST"}\n')
    (line,) = fenchel("predict", run, "-").out.splitlines()
    assert line.startswith("wa l k V;PST\t")
    assert line.count("\t") == 3


def test_answers_fit_into_a_narrow_terminal(fenchel, run, typed, monkeypatch):
    monkeypatch.setattr("fenchel.cli.predict.out", Console(force_terminal=True, width=34))
    typed("walk\tV;PST\n")
    shown = Text.from_ansi(fenchel("predict", run, "-", "--exact").out).plain
    (line,) = shown.splitlines()
    assert line.startswith("walk V;PST")
    assert line.endswith("best")


def test_a_language_that_the_run_has_not_is_refused(fenchel, words, tmp_path, typed):
    for language in ("english", "german"):
        text = (words / "train.tsv").read_text(encoding="utf-8")
        (tmp_path / f"{language}-train.tsv").write_text(text, encoding="utf-8")
    out = tmp_path / "run"
    files = tmp_path.glob("*-train.tsv")
    made = fenchel(
        "train", "inflection", "--train", *files, "--out", out, "--epochs", 1, *settings()
    )
    assert made.code == 0, made.err
    typed("walk\tV;PST\n")
    assert "did you mean 'english'?" in fenchel("predict", out, "-", "--language", "englsh").err
    (tmp_path / "asked.tsv").write_text("walk\tV;PST\n", encoding="utf-8")
    assert (
        "got 'asked' (the name of the file)" in fenchel("predict", out, tmp_path / "asked.tsv").err
    )
    typed("lemma\ttags\tlanguage\nwalk\tV;PST\tgerman\n")
    assert fenchel("predict", out, "-").out.startswith("walk german;V;PST\t")


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
    for name in ("x.gpx", "x"):
        wrong = fenchel("predict", run, words / "test.tsv", option, "--picture", tmp_path / name)
        assert wrong.code == 2
        assert "--picture must end with one of .png, .svg, .pdf, got " in wrong.err
        assert wrong.out == ""


def test_answers_are_written_or_drawn(fenchel, run, words):
    outcome = fenchel("predict", run, words / "test.tsv", "--json", "--lattice")
    assert outcome.code == 2
    assert "--json cannot be combined with --lattice or --autocomplete" in outcome.err


def test_a_person_may_type_spaces_and_make_mistakes(fenchel, run, typed):
    typed("walk\n\nwalk V;PST\n", person=True)
    outcome = fenchel("predict", run)
    assert outcome.code == 0
    assert "type lemma tags" in outcome.err
    assert "a line must be lemma tags" in outcome.err
    assert outcome.out.startswith("walk V;PST\t")
    assert len(outcome.out.splitlines()) == 1


def test_bad_files_are_told(fenchel, run, tmp_path, typed):
    (tmp_path / "bad.tsv").write_bytes(b"walk\tV;PST\n\xff\tV\n")
    for source, message in (
        (tmp_path / "bad.tsv", ":2: text must be UTF-8"),
        (tmp_path, "Is a directory"),
    ):
        outcome = fenchel("predict", run, source)
        assert outcome.code == 2
        assert message in outcome.err
    typed("")
    assert "at least one line" in fenchel("predict", run, "-").err
