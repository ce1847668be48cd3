"""Characters that steer a terminal or break a line are shown escaped, wherever they come from."""

from __future__ import annotations

import io
import json
import sys
import unicodedata

import pytest
from rich.console import Console
from rich.text import Text

from fenchel.cli import console, progress
from fenchel.cli.printable import one_line, printable
from fenchel.cli.view import View, Wishes
from fenchel.data import Codec, Example
from fenchel.search import Answer, Hypothesis

BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
HOSTILE = "a\x1b[31mb\x07\0\x7f\x85\x9b\u2028\u202ez"
SHOWN = r"a\x1b[31mb\x07\x00\x7f\x85\x9b\u2028\u202ez"
ORDINARY = [
    "naïve, nai\u0308ve",
    "می\u200cخواهم",  # zero width non-joiner
    "👩\u200d🚀 क\u094d\u200dष",  # zero width joiner
    "עברית\u200f!",  # right-to-left mark
    "日本語 ▁ \u00ad",
    r"a\x1b",
    "a\tb\nc",
]


def unsafe(text: str) -> set[str]:
    return {
        char
        for char in text
        if char not in "\t\n"
        and (
            unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
            or unicodedata.bidirectional(char) in BIDI
        )
    }


def test_every_unsafe_character_is_escaped_and_no_other():
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        escaped = char.encode("unicode_escape").decode()
        assert printable(char) == (escaped if unsafe(char) else char)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text):
    assert printable(text) == text


def test_a_newline_does_not_break_one_line():
    assert one_line("a\r\nb") == r"a\r\nb"


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
    monkeypatch.setattr("fenchel.cli.view.out", Console(force_terminal=True, width=150))
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
def test_the_model_s_own_answers_are_escaped(monkeypatch, capsys, terminal, lattice):
    monkeypatch.setattr("fenchel.cli.view.out", Console(force_terminal=terminal, width=150))
    example = Example("ab", "b\x1bc")
    codec = Codec.fit([example, Example("ab", "b\x1bd")])
    view = View(codec, None, Wishes(2, lattice, False, False, None))  # pyright: ignore
    view([example], [answer_of(codec, "b\x1bc", "b\x1bd")])
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
    monkeypatch.setattr(progress, "notes", Console(file=terminal, force_terminal=True, width=150))
    with progress.counting(f"{HOSTILE}[bold]", 1) as count:
        count(1)
    assert f"{SHOWN}[bold]" in Text.from_ansi(terminal.getvalue()).plain
