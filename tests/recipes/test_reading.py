"""Which examples a run learns from, and that it says so."""

from __future__ import annotations

import pytest

from fenchel import FenchelError
from fenchel.recipes import recipe
from fenchel.recipes.reading import read, splits


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_without_files_the_shipped_languages_are_used_and_named():
    found = splits(recipe("inflection"), [], [], [])
    assert (len(found.train), len(found.dev), len(found.test)) == (4000, 1000, 1000)
    assert "no --train" in found.notes[0]
    assert "turkish" in found.notes[0]


def test_recipes_without_a_shipped_set_ask_for_files():
    with pytest.raises(FenchelError, match=r"--train FILE of lines source<tab>target"):
        splits(recipe("translation"), [], [], [])


def test_a_test_set_alone_is_refused():
    with pytest.raises(FenchelError, match="--test alone"):
        splits(recipe("inflection"), [], [], ["x.tsv"])


def test_a_development_set_is_held_out_the_same_way_every_time(tmp_path):
    path = write(tmp_path / "train.tsv", [f"l{k}\tf{k}\tV" for k in range(40)])
    first, second = (splits(recipe("inflection"), [path], [], []) for _ in range(2))
    assert (len(first.train), len(first.dev), first.test) == (36, 4, [])
    assert first == second
    assert not set(first.train) & set(first.dev)
    assert "4 of them are held out" in first.notes[1]
    other = splits(recipe("inflection", ["seed=5"]), [path], [], [])
    assert other.dev != first.dev


@pytest.mark.parametrize(("repeats", "held"), [(2, 4), (3, 3), (8, 8)])
def test_what_is_held_out_is_not_asked_in_training(tmp_path, repeats, held):
    lines = [f"s{k % (40 // repeats)}\tt{k}" for k in range(40)]
    path = write(tmp_path / "pairs.tsv", lines)
    found = splits(recipe("translation"), [path], [], [])
    assert not {e.source for e in found.train} & {e.source for e in found.dev}
    assert len(found.dev) == held
    assert len(found.train) == 40 - held
    assert len(found.notes) == 2


@pytest.mark.parametrize("name", ["german-dev.tsv", "others.tsv"])
def test_questions_that_were_learned_from_are_told(tmp_path, name):
    learned = write(tmp_path / "german-train.tsv", ["a\tb\tV", "a\tb\tN", "a\tb\tV"])
    other = write(tmp_path / name, ["a\tx\tV", "c\td\tV"])
    notes = splits(recipe("inflection"), [learned], [other], [other]).notes
    assert "1 of the 2 examples of dev are also asked in training" in notes
    assert "1 of the 2 examples of test are also asked in training" in notes
    (note, _) = splits(
        recipe("inflection"), [learned], [write(tmp_path / "b", ["c\td\tV"])], [other]
    ).notes
    assert note == "learning from 3 examples"


def test_the_same_word_of_another_language_is_another_question(tmp_path):
    lines = ["a\tb\tV"]
    german, dutch, other = (write(tmp_path / f"{n}.tsv", lines) for n in ("german", "dutch", "low"))
    assert len(splits(recipe("inflection"), [german, dutch], [other], []).notes) == 1


def test_one_example_cannot_be_split(tmp_path):
    path = write(tmp_path / "train.tsv", ["a\tb\tV"])
    with pytest.raises(FenchelError, match="expected two different questions or --dev, got 1"):
        splits(recipe("inflection"), [path], [], [])


def test_a_pair_of_plain_files_is_read_line_by_line_and_records_one_after_the_other(tmp_path):
    german = write(tmp_path / "train.de", ["eins", "zwei"])
    english = write(tmp_path / "train.en", ["one", "two"])
    records = [write(tmp_path / f"{k}.tsv", [f"s{k}\tt{k}"]) for k in range(2)]
    data = recipe("translation").data
    pairs = read(data, [german, english], need_targets=True)
    assert [(e.source, e.target) for e in pairs] == [("eins", "one"), ("zwei", "two")]
    both = read(data, records, need_targets=True)
    assert [(e.source, e.target) for e in both] == [("s0", "t0"), ("s1", "t1")]


def test_a_malformed_line_is_named(tmp_path):
    path = write(tmp_path / "own.tsv", ["a\tb\tV", "a b V"])
    with pytest.raises(FenchelError, match=r"own.tsv, line 2.*lemma<tab>form<tab>tags"):
        splits(recipe("inflection"), [path], [], [])
