"""Unsafe characters are printed escaped, wherever they come from."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from fenchel.cli import console
from fenchel.cli.predict import _predict
from fenchel.data.bad_items import BadItems
from fenchel.recipes import make_recipe
from fenchel.search import Answer, Hypothesis
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.predict_options import PredictOptions
from fenchel.training import Run
from tests.cli.unsafe import unsafe

HOSTILE = "a\x1b[31mb\x07\0\x7f\x85\x9b\u2028\u202ez"
SHOWN = r"a\x1b[31mb\x07\x00\x7f\x85\x9b\u2028\u202ez"


@pytest.fixture
def asked(tmp_path):
    """A file with one hostile line and one ordinary line."""
    file = tmp_path / "asked.jsonl"
    lemmas = [HOSTILE, "می\u200cخواهم"]
    lines = [json.dumps({"lemma": lemma, "tags": "V;PST"}) for lemma in lemmas]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_answers_in_a_pipe_are_one_line_each(fenchel, run, asked):
    outcome = fenchel("predict", run, asked)
    first, second = outcome.out.splitlines()
    assert first.startswith(f"{SHOWN} V;PST\t")
    assert second.startswith("می\u200cخواهم V;PST\t")
    assert not unsafe(outcome.err)
    assert f"example 1 ({SHOWN}): the model does not know" in outcome.err


@pytest.mark.parametrize("options", [[], ["--lattice"], ["--autocomplete"]])
def test_answers_on_a_terminal_are_escaped(fenchel, run, asked, monkeypatch, options):
    monkeypatch.setattr("fenchel.cli.predict.out", Console(force_terminal=True, width=150))
    shown = Text.from_ansi(fenchel("predict", run, asked, *options).out).plain
    assert not unsafe(shown)
    assert f"{SHOWN} V;PST  " in shown


def test_json_is_exact_and_safe(fenchel, run, asked):
    outcome = fenchel("predict", run, asked, "--json")
    first, second = outcome.out.splitlines()
    assert not unsafe(outcome.out)
    assert json.loads(first)["source"] == HOSTILE
    assert "می\u200cخواهم" in second


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_exact_in_every_encoding(monkeypatch, encoding):
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stream)
    value = {"text": "é 日 👩\u200d🚀 \ud800" + HOSTILE}
    console.write_json(value)
    assert json.loads(written.getvalue().decode(encoding)) == value


def answer_of(codec: Codec, *texts: str) -> Answer:
    ways = [codec.target_vocabulary.ids(list(text)) for text in texts]
    found = [Hypothesis.of(tuple(way), -1.0, finished=True) for way in ways]
    return Answer.of(found, float("-inf"))


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("lattice", [False, True])
def test_the_model_s_own_answers_are_escaped(monkeypatch, capsys, tmp_path, terminal, lattice):
    monkeypatch.setattr("fenchel.cli.predict.out", Console(force_terminal=terminal, width=150))
    example = Example("ab", "b\x1bc")
    codec = Codec.fit([example, Example("ab", "b\x1bd")])
    run = Run(tmp_path, make_recipe("translation"), codec)
    options = PredictOptions(answers=2, lattice=lattice)
    output = "terminal" if terminal else "lines"
    predictor = run.task.predictor(run, options, output)
    found = [answer_of(codec, "b\x1bc", "b\x1bd")]
    monkeypatch.setattr(predictor, "predict", lambda *_: found)
    _predict(predictor, [example], as_json=False, bad=BadItems())
    shown = Text.from_ansi(capsys.readouterr().out).plain
    assert not unsafe(shown)
    if lattice:
        _, first, second = shown.splitlines()
        assert first.startswith(r"b\x1b ─┬─ ")
        assert second.startswith(" " * len(r"b\x1b ") + " └─ ")
    else:
        assert len(shown.splitlines()) == 2
        assert shown.count(r"b\x1b") == 2


def test_tables_escape_titles_names_and_cells(capsys):
    console.out.print(console.grid(HOSTILE, [HOSTILE, ":smile:"], [(HOSTILE, "[red]a\nb")]))
    shown = capsys.readouterr().out
    assert not unsafe(shown)
    assert shown.count(SHOWN) == 3
    assert ":smile:" in shown
    assert r"[red]a\nb" in shown


def test_whatever_a_task_prints_is_escaped():
    terminal = io.StringIO()
    shown = console.SafeConsole(file=terminal, force_terminal=True, width=150)
    shown.print(Group(Text(HOSTILE, style="bold"), Panel(Text(HOSTILE))))
    plain = Text.from_ansi(terminal.getvalue()).plain
    assert not unsafe(plain)
    assert plain.count(SHOWN.replace(r"\x07", "")) == 2  # rich drops the bell


@pytest.mark.parametrize("say", [console.note, console.warn])
def test_remarks_are_one_line(capsys, say):
    say(f"{HOSTILE}\nfenchel: done [bold]")
    assert capsys.readouterr().err == f"{SHOWN}\\nfenchel: done [bold]\n"


def test_errors_are_one_line(fenchel, run):
    outcome = fenchel("predict", run, "/nowhere/" + HOSTILE.replace("\0", "") + "\nx")
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert SHOWN.replace(r"\x00", "") + r"\nx" in line
    assert not unsafe(line)


def test_progress_is_described_on_one_line(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(console, "notes", Console(file=terminal, force_terminal=True, width=150))
    with console.progress_bar(f"{HOSTILE}[bold]", 1) as count:
        count(1)
    assert f"{SHOWN}[bold]" in Text.from_ansi(terminal.getvalue()).plain
