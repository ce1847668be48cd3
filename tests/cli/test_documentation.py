"""What the pages tell a person to type is what the program takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from fenchel.cli import repeat_options
from fenchel.cli.app import app
from fenchel.tasks.sequences.public_sets import shipped
from tests.cli.conftest import TINY

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TYPED = re.compile(r"^\$ (?:.*\| )?(fenchel .*)$", flags=re.MULTILINE)
COMMANDS = [line for page in PAGES for line in TYPED.findall(page.read_text(encoding="utf-8"))]
SEQUENCES = ROOT / "docs" / "sequences.md"


def test_the_pages_have_commands():
    assert len(COMMANDS) > 15


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_pages_is_understood(line: str):
    name, *arguments = repeat_options(shlex.split(line, comments=True)[1:])
    commands: Any = get_command(app)
    context = commands.make_context("fenchel", [name], resilient_parsing=True)
    command = commands.get_command(context, name)
    assert command is not None
    assert command.make_context(name, arguments).params


def test_the_code_of_the_page_about_sequences_runs(tmp_path, monkeypatch, capsys):
    """With fewer words and a smaller model than the page has."""
    few = {split: examples[:12] for split, examples in shipped().items()}
    monkeypatch.setattr("fenchel.tasks.sequences.public_sets.shipped", lambda: few)
    monkeypatch.chdir(tmp_path)
    text = SEQUENCES.read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    tiny = ", ".join(f'"{setting}"' for setting in ("epochs=1", *TINY))
    exec(compile(code.replace('"epochs=10"', tiny), str(SEQUENCES), "exec"), {})
    metric, *predictions = capsys.readouterr().out.splitlines()
    assert metric.startswith("test ")
    assert len(predictions) == 3
    assert all(line.endswith(("True", "False")) for line in predictions)
