"""The tables of the pages are those of the result files."""

from __future__ import annotations

import pytest

from benchmarks.paper_tables import ROOT, pages, updated
from fenchel.recipes.reproductions.results import Row, update_rows

TABLE = "2016-martins/table3"
END = "<!-- end of results -->"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_tables_of_a_page_are_up_to_date(page):
    assert updated(page) == page.read_text(encoding="utf-8"), "run `make tables`"


@pytest.fixture
def write(tmp_path):
    """Write a page with a mark, and return it with the tables of two experiments."""

    def write(mark: str = "", rows=True) -> list[str]:
        found = [
            ("a: bleu", 38.5, 26.0, [38.0, 39.0]),
            ("a: speed", 1.0, None, []),
            ("b: bleu", 9.0, None, []),
        ]
        if rows:
            made = [Row(*each, command="", commit="c0ffee", hardware="a machine") for each in found]
            update_rows(tmp_path / "results" / TABLE / "metrics.json", made)
            (tmp_path / "results" / TABLE / "two-curves.png").touch()
        (tmp_path / "docs").mkdir(exist_ok=True)
        page = tmp_path / "docs" / "page.md"
        page.write_text(f"Before\n<!-- results {TABLE}{mark} -->\nold\n{END}\nafter\n")
        page.write_text(updated(page, tmp_path / "results"))
        once = page.read_text()
        assert updated(page, tmp_path / "results") == once
        return [line for line in once.splitlines() if line]

    return write


def test_a_table_has_experiments_measures_and_the_figures_of_the_paper(write):
    assert write() == [
        "Before",
        f"<!-- results {TABLE} -->",
        "|  | bleu | paper | speed |",
        "| --- | --- | --- | --- |",
        "| a | 38.50 ± 0.71 | 26.00 | 1.000 |",
        "| b | 9.00 |  | – |",
        "![two curves](../results/2016-martins/table3/two-curves.png)",
        f"`fenchel reproduce {TABLE}`, 1 to 2 seeds, on a machine; commit c0ffee.",
        END,
        "after",
    ]


def test_rows_may_be_measures_of_some_experiments(write):
    assert write(" by measure only ^a")[2:6] == [
        "|  | a | paper |",
        "| --- | --- | --- |",
        "| bleu | 38.50 ± 0.71 | 26.00 |",
        "| speed | 1.000 |  |",
    ]
    assert write(" pictures")[2].startswith("![two curves]")


def test_a_table_without_results_says_how_to_measure_it(write):
    assert write(rows=False)[2] == f"Not measured yet: `fenchel reproduce {TABLE}`."
