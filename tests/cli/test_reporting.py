"""`fenchel report` and `fenchel reproduce` write what they say."""

from __future__ import annotations

import json
import re

import pytest

from fenchel.recipes.reproductions import TABLES

FIELDS = {"name", "ours", "paper", "command", "commit", "hardware"}
PAIRS = [("ein hund läuft", "a dog runs"), ("eine katze schläft", "a cat sleeps"), ("ja", "yes")]


@pytest.fixture
def multi30k(tmp_path):
    """A folder in the form of the public set, with a few sentences."""
    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    for stem in ("train", "val", "test_2016_flickr"):
        for side, language in enumerate(("de", "en")):
            text = "".join(f"{pair[side]}\n" for pair in PAIRS * 3)
            (folder / f"{stem}.{language}").write_text(text, encoding="utf-8")
    return folder


def reproduce(fenchel, name, folder, tmp_path, *options):
    places = ["--data", folder, "--results", tmp_path / "results", "--runs", tmp_path / "runs"]
    options = [*options, "--set", "max_length=6", "--set", "accelerator=cpu"]
    return fenchel("reproduce", name, "--quick", *places, *options)


def test_a_report_is_one_page_with_all_its_parts(fenchel, run, tmp_path):
    outcome = fenchel("report", run, "--out", tmp_path / "page.html", "--examples", 2)
    assert outcome.code == 0
    assert outcome.out.strip() == str(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for heading in ("Figures", "Training", "Supports", "Examples", "Settings"):
        assert f">{heading}<" in text
    assert text.count("<article>") == 2
    assert not re.search(r"(src|href)=|url\(|https?:", text)
    assert len(text) < 200_000


def test_a_table_is_reproduced_row_by_row(fenchel, multi30k, tmp_path):
    outcome = reproduce(fenchel, "2019-peters/table2", multi30k.parent, tmp_path)
    assert outcome.code == 0, outcome.err
    path = tmp_path / "results" / "2019-peters" / "table2" / "quick.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert [row["name"] for row in rows] == ["softmax: bleu", "1.5-entmax: bleu", "sparsemax: bleu"]
    assert [row["paper"] for row in rows] == [25.70, 26.17, 24.69]
    assert all(set(row) == FIELDS for row in rows)
    assert "--quick" in rows[0]["command"]
    again = reproduce(fenchel, "2019-peters/table3", multi30k, tmp_path, "--only", "sparsemax")
    assert "epoch" not in again.err
    table3 = tmp_path / "results" / "2019-peters" / "table3" / "quick.json"
    figures = {row["name"]: row["paper"] for row in json.loads(table3.read_text(encoding="utf-8"))}
    assert figures == {"sparsemax: attended": 3.75, "sparsemax: target words": 7.55}


def test_speeds_are_taken_in_turns(fenchel, multi30k, tmp_path):
    outcome = reproduce(fenchel, "2019-peters/figure6", multi30k, tmp_path)
    assert outcome.code == 0, outcome.err
    path = tmp_path / "results" / "2019-peters" / "figure6" / "quick.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert [row["paper"] for row in rows[:3]] == [14500, 13000, 10500]
    assert rows[3]["name"] == "1.5-entmax / softmax: speed"
    assert rows[3]["paper"] == pytest.approx(0.897, abs=1e-3)
    assert len(rows) == 5
    assert all(row["ours"] > 0 for row in rows)


def test_headlines_are_compared_by_rouge(fenchel, tmp_path):
    story = "the bank said it would raise its rates again in the coming weeks, by {} {}"
    stories = [
        {"lewis": split, "title": f"BANK {k}", "body": story.format(k, split)}
        for split in ("TRAIN", "NOT-USED", "TEST")
        for k in range(4)
    ]
    lines = "".join(json.dumps(story) + "\n" for story in stories)
    (tmp_path / "reuters21578.jsonl").write_text(lines, encoding="utf-8")
    outcome = reproduce(fenchel, "2017-niculae/table2", tmp_path, tmp_path, "--only", "fusedmax")
    assert outcome.code == 0, outcome.err
    path = tmp_path / "results" / "2017-niculae" / "table2" / "quick.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert [row["paper"] for row in rows] == [36.09, 17.62, 33.69]


def test_what_cannot_be_reproduced_is_told(fenchel, multi30k, tmp_path):
    wrong = fenchel("reproduce", "2019-peters/table1")
    assert wrong.code == 2
    assert "2019-peters/table1-" in wrong.err
    nothing = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, "--only", "hardmax")
    assert nothing.code == 2
    assert "1.5-entmax" in nothing.err
    elsewhere = reproduce(fenchel, "2019-peters/table2", tmp_path / "nowhere", tmp_path)
    assert elsewhere.code == 2
    assert "nowhere" in elsewhere.err


def test_every_table_has_a_valid_recipe_and_measures_for_its_figures():
    from fenchel.recipes.reproductions.table import TimedTable
    from fenchel.recipes.reproductions.training import Occasion, configured

    for name, table in TABLES.items():
        assert name == table.name
        folders = [experiment.folder for experiment in table.experiments]
        assert len(set(folders)) == len(folders)
        known = {"words"} if isinstance(table, TimedTable) else {m.name for m in table.measures}
        for experiment in table.experiments:
            assert set(experiment.paper) <= known
            for quick in (False, True):
                occasion = Occasion(runs=None, quick=quick)  # pyright: ignore[reportArgumentType]
                assert configured(table, experiment, occasion).name == table.recipe
