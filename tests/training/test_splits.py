"""Which examples a run is trained on, and that its notes say so."""

from __future__ import annotations

import json

import pytest

from fenchel import FenchelError
from fenchel.recipes import make_recipe
from fenchel.training import DataSource, PublicSet, Splits


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def splits(recipe, train=(), dev=(), test=()) -> Splits:
    return DataSource.of_files({"train": train, "dev": dev, "test": test}).splits(recipe)


def test_without_files_the_bundled_examples_are_used():
    found = splits(make_recipe("inflection"))
    assert (len(found.train), len(found.dev), len(found.test)) == (4000, 1000, 1000)
    (note,) = found.notes
    assert note == "no --train: training on the 4000 examples that come with fenchel"


def test_recipes_without_bundled_examples_require_files():
    expected = r"translation requires --train FILE with the columns source<tab>target$"
    with pytest.raises(FenchelError, match=expected):
        splits(make_recipe("translation"))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_other_files_require_training_files(split):
    with pytest.raises(FenchelError, match=f"^--{split} requires --train: "):
        splits(make_recipe("inflection"), **{split: ["x.tsv"]})


def test_a_public_set_is_read_by_its_task(tmp_path):
    body = " ".join(map(str, range(10)))
    rows = [
        {"lewis": lewis, "title": title, "body": f"{body} {title}."}
        for lewis, title in (("TRAIN", "A"), ("NOT-USED", "B"), ("TEST", "C"))
    ]
    write(tmp_path / "reuters21578.jsonl", map(json.dumps, rows))
    public = PublicSet("reuters21578", str(tmp_path))
    found = DataSource(public=public).splits(make_recipe("summarization"))
    targets = [
        [example.target for example in part] for part in (found.train, found.dev, found.test)
    ]
    assert targets == [["a"], ["b"], ["c"]]


def test_development_examples_are_held_out_the_same_way_every_time(tmp_path):
    path = write(tmp_path / "train.tsv", [f"l{k}\tf{k}\tV" for k in range(40)])
    first, second = (splits(make_recipe("inflection"), [path]) for _ in range(2))
    assert (len(first.train), len(first.dev), first.test) == (36, 4, [])
    assert first == second
    assert not set(first.train) & set(first.dev)
    assert first.notes == (
        "training on 40 examples",
        "no --dev: 4 of them are held out to select the best epoch",
    )
    other = splits(make_recipe("inflection", ["seed=5"]), [path])
    assert other.dev != first.dev


def test_the_held_out_share_is_a_setting(tmp_path):
    path = write(tmp_path / "train.tsv", [f"l{k}\tf{k}\tV" for k in range(40)])
    assert len(splits(make_recipe("inflection", ["held_out=0.25"]), [path]).dev) == 10


@pytest.mark.parametrize(("repeats", "held"), [(2, 4), (3, 3), (8, 8)])
def test_held_out_inputs_do_not_occur_in_training(tmp_path, repeats, held):
    lines = [f"s{k % (40 // repeats)}\tt{k}" for k in range(40)]
    path = write(tmp_path / "pairs.tsv", lines)
    found = splits(make_recipe("translation"), [path])
    assert not {e.source for e in found.train} & {e.source for e in found.dev}
    assert len(found.dev) == held
    assert len(found.train) == 40 - held
    assert len(found.notes) == 2


@pytest.mark.parametrize("name", ["german-dev.tsv", "others.tsv"])
def test_inputs_that_also_occur_in_training_are_counted(tmp_path, name):
    train = write(tmp_path / "german-train.tsv", ["a\tb\tV", "a\tb\tN", "a\tb\tV"])
    other = write(tmp_path / name, ["a\tx\tV", "c\td\tV"])
    recipe = make_recipe("inflection")
    assert splits(recipe, [train], [other], [other]).notes[1:] == (
        "1 of the 2 dev examples also occur in the training examples",
        "1 of the 2 test examples also occur in the training examples",
    )
    dev = write(tmp_path / "b", ["c\td\tV"])
    assert splits(recipe, [train], [dev], [dev]).notes == ("training on 3 examples",)


def test_the_same_word_of_another_language_is_another_input(tmp_path):
    lines = ["a\tb\tV"]
    german, dutch, other = (write(tmp_path / f"{n}.tsv", lines) for n in ("german", "dutch", "low"))
    assert len(splits(make_recipe("inflection"), [german, dutch], [other]).notes) == 1


def test_one_example_cannot_be_split(tmp_path):
    path = write(tmp_path / "train.tsv", ["a\tb\tV"])
    with pytest.raises(FenchelError, match="requires two different inputs, got 1: pass --dev FILE"):
        splits(make_recipe("inflection"), [path])


def test_a_malformed_line_is_named(tmp_path):
    path = write(tmp_path / "own.tsv", ["a\tb\tV", "a b V"])
    with pytest.raises(FenchelError, match=r"own\.tsv:2: .*lemma<tab>form<tab>tags"):
        splits(make_recipe("inflection"), [path])


def test_paths_are_found_from_any_folder(tmp_path, monkeypatch):
    write(tmp_path / "train.tsv", [f"l{k}\tf{k}\tV" for k in range(10)])
    monkeypatch.chdir(tmp_path)
    source = DataSource.of_files({"train": ["train.tsv"], "dev": []})
    assert source.files == {"train": [str(tmp_path / "train.tsv")]}
    monkeypatch.chdir("/")
    assert len(source.splits(make_recipe("inflection")).train) == 9
