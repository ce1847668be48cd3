"""How the task of sequences reads files and shows metrics."""

from __future__ import annotations

from fenchel.recipes import make_recipe
from fenchel.tasks.sequences import Seq2SeqTask


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_two_plain_files_are_read_line_by_line_and_records_one_file_after_the_other(tmp_path):
    german = write(tmp_path / "train.de", ["eins", "zwei"])
    english = write(tmp_path / "train.en", ["one", "two"])
    records = [write(tmp_path / f"{k}.tsv", [f"s{k}\tt{k}"]) for k in range(2)]
    task = make_recipe("translation").task
    pairs = task.read([german, english])
    assert [(e.source, e.target) for e in pairs] == [("eins", "one"), ("zwei", "two")]
    both = task.read(records)
    assert [(e.source, e.target) for e in both] == [("s0", "t0"), ("s1", "t1")]


def test_the_main_metric_comes_first_and_languages_have_their_own_table():
    metrics = {"bleu": None, "examples": 4, "accuracy": 50.0, "groups": {"de": 25.0, "en": 75.0}}
    whole, languages = Seq2SeqTask().metric_tables(metrics, "test")
    assert whole.caption == "test"
    assert [row[:2] for row in whole.rows] == [("accuracy", 50.0), ("examples", 4)]
    assert languages.rows == [("de", 25.0), ("en", 75.0)]
    one_language = {**metrics, "groups": {"de": 25.0}}
    assert len(Seq2SeqTask().metric_tables(one_language, "test")) == 1
    (table,) = Seq2SeqTask(metric="bleu").metric_tables({"examples": 1, "bleu": 9.0}, "test")
    assert [row[0] for row in table.rows] == ["bleu", "examples"]
