"""What the pages show runs, and what they point to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import LINK, ROOT, code_of, dead_links, run_code

PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = (
    "sequences.md",
    "search.md",
)  # trains a model; prints what it shows: tests/cli, tests/search
DRAW_THEIR_FIGURES = ("structured.md", "continuous.md")
WITH_CODE = [page for page in PAGES if code_of(page) and page.name not in ELSEWHERE]


def test_pages_have_code():
    names = {"README.md", "maps.md", "structured.md", "continuous.md", "transformers.md"}
    names |= {"multilabel.md", "attention.md"}
    assert {page.name for page in WITH_CODE} == names


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_code(page)
    if page.name in DRAW_THEIR_FIGURES:
        shown = {
            Path(name).name
            for name in LINK.findall(page.read_text(encoding="utf-8"))
            if "images/" in name
        }
        assert {path.name for path in tmp_path.glob("*.png")} == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert dead_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_do_not_install_from_an_index(page):
    """The package is on no index: what pip installs is a checkout."""
    assert not re.search(r"pip install [^#\n]*fenchel", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fenchel_is_on_path_before_a_page_calls_it(page):
    """`make demo` and pip install the command into .venv/bin, which no shell searches by itself."""
    text = page.read_text(encoding="utf-8")
    call = re.search(r"^\$ (.*\| )?fenchel ", text, re.MULTILINE)
    assert call is None or ". .venv/bin/activate" in text[: call.start()]


def test_the_gradient_that_a_page_calls_zero_for_most_classes_is():
    shown = run_code(ROOT / "docs" / "maps.md")
    assert (shown["logits"].grad == 0).float().mean() > 0.9
