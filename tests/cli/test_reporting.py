"""`fenchel report` writes what it says."""

from __future__ import annotations

import re


def test_a_report_is_one_page_with_all_its_parts(fenchel, run, tmp_path):
    outcome = fenchel("report", run, "--out", tmp_path / "page.html", "--examples", 2)
    assert outcome.code == 0
    assert outcome.out.strip() == str(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for heading in ("Results", "Training", "Supports", "Examples", "Settings"):
        assert f">{heading}<" in text
    assert text.count("<article>") == 2
    assert f"fenchel report {run} --out {tmp_path / 'page.html'} --examples 2" in text
    assert not re.search(r"src=|href=(?!\"#)|url\(|https?:", text)
    assert len(text) < 200_000


def test_a_report_without_examples_does_not_announce_any(fenchel, run, tmp_path):
    fenchel("report", run, "--out", tmp_path / "page.html", "--examples", 0)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert ">Supports<" in text
    assert ">Examples<" not in text
