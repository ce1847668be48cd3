"""The demo runs end to end: two models, a table, a lattice, a report, pictures."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys

import pytest
import torch

import fenchel
from fenchel import demo
from fenchel.analysis import maps


@pytest.mark.slow
def test_the_demo_trains_compares_draws_and_names_its_files(tmp_path, capsys, monkeypatch):
    out = tmp_path / "my [bold] demo"
    monkeypatch.setenv("PATH", os.defpath)
    threads = torch.get_num_threads()
    few = ["--examples", "6", "--epochs", "1", "--size", "4", "--points", "5"]
    demo.main(["--out", str(out), *few, "--maps", "--rows", "4"])
    assert torch.get_num_threads() == threads
    printed = capsys.readouterr().out
    for text in (*demo.MODELS, *demo.FIGURES.values(), "the right form is"):
        assert text in printed
    assert "4 × 512" in printed
    pictures = [f"{name}.png" for name in ("alpha_sweep", "curves", "losses")]
    pictures += [f"simplex_{name}.png" for name in maps.MAPS]
    for name in ("report.html", *pictures, *demo.MODELS):
        assert (out / name).exists()
        assert name in printed.replace("\n", "")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Side by side" in page
    assert "softmax: examples" in page
    (command,) = re.findall(r"^try: (.*)$", printed, flags=re.MULTILINE)
    asked = "draw\tV;PST\n"  # few examples are of one language
    ran = subprocess.run(["sh", "-c", command], input=asked, capture_output=True, text=True)
    assert ran.stdout.startswith("draw V;PST\t"), ran.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--epochs", "0"], "epochs must be"), (["--out", "/dev/null/x"], "Not a directory")],
)
def test_a_mistake_is_one_message(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["demo", *arguments])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(demo.__file__, run_name="__main__")
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fenchel: ")
    assert message in line


def test_missing_rich_names_the_extra(monkeypatch, tmp_path):
    for module in ("rich", "rich.console"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(fenchel.FenchelError, match=r"fenchel\[train\]"):
        demo.main(["--out", str(tmp_path)])
