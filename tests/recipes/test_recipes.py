"""A recipe is a whole configuration, and survives being stored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fenchel import FenchelError
from fenchel.data.multilabel_example import MultilabelExample
from fenchel.data.texts import Document, SentencePair
from fenchel.data.visual_questions import VisualQuestion
from fenchel.recipes import RECIPES, make_recipe
from fenchel.settings import describe
from fenchel.tasks import load_run
from fenchel.tasks.sequences.example import Example
from fenchel.training import Run

WORDS = [Example("walk", "walked", ("V", "PST")), Example("call", "called", ("V",))]
EXAMPLES = {
    "sequences": WORDS,
    "transformer": WORDS,
    "language-model": ["a superb film", "a mess"],
    "vqa": [
        VisualQuestion(Path("a.png"), "what is it ?", "chair"),
        VisualQuestion(Path("b.png"), "what is it ?", "table"),
    ],
    "documents": [Document("a superb film", "good"), Document("a mess", "bad")],
    "multilabel": [
        MultilabelExample("a film", ("good", "new")),
        MultilabelExample("a film", ("bad",)),
    ],
    "nli": [SentencePair("a dog runs", "it moves", "yes"), SentencePair("a dog", "a cat", "no")],
}
OWN_CHANGE = {"multilabel": "penalties=1,0.1"}


def stored(folder, name="inflection", changes=()) -> Run:
    """A run of a recipe, as it is stored before its first epoch."""
    recipe = make_recipe(name, changes)
    processor = recipe.task.fit_processor(EXAMPLES[recipe.task.kind])
    run = Run(folder, replace(recipe, task=recipe.task.sized(processor)), processor)
    run.save()
    return run


@pytest.mark.parametrize("name", RECIPES)
def test_a_stored_recipe_is_loaded_unchanged(name, tmp_path):
    change = OWN_CHANGE.get(name, "attention_alpha=learned")
    made = stored(tmp_path, name, ["training.epochs=3", change]).recipe
    assert load_run(tmp_path).recipe == made
    assert made.training.epochs == 3
    assert made.name == name
    assert made.summary[0].islower()
    assert not made.summary.endswith(".")


@pytest.mark.parametrize("name", RECIPES)
def test_every_setting_has_a_description(name):
    assert all(each.meaning for each in describe(make_recipe(name)))


def test_a_stored_recipe_of_another_version_is_refused(tmp_path):
    stored(tmp_path)
    file = tmp_path / "config.json"
    state = json.loads(file.read_text(encoding="utf-8"))
    recipe = state["recipe"]
    other = {**recipe, "task": {**recipe["task"], "model": {"sizes": 3}}}
    without = {name: value for name, value in recipe.items() if name != "summary"}
    for changed, message in (
        (other, r"config.json: recipe.task.model must not have the key 'sizes'"),
        (without, r"config.json: recipe must have the key 'summary'"),
    ):
        file.write_text(json.dumps({**state, "recipe": changed}), encoding="utf-8")
        with pytest.raises(FenchelError, match=message):
            load_run(tmp_path)


def test_a_recipe_monitors_a_metric_of_its_task():
    with pytest.raises(FenchelError, match="monitor"):
        make_recipe("inflection", ["monitor=acuracy"])


TOO_SMALL = ("min_count=0", "merges=-1", "width=0", "max_length=0", "sentences=0")
TOO_LARGE = ("width=1000000000", "max_length=1000000000")


@pytest.mark.parametrize("wrong", [*TOO_SMALL, *TOO_LARGE, "held_out=1", "held_out=-0.1"])
def test_a_setting_that_only_search_or_data_need_is_refused_before_training(wrong):
    with pytest.raises(FenchelError, match=wrong.partition("=")[0]):
        make_recipe("inflection", [wrong])


def test_the_inflection_recipe_is_the_papers():
    made = make_recipe("inflection")
    model, search = made.task.model, made.task.search
    assert (model.hidden_size, model.embedding_size, model.layers) == (300, 300, 2)
    assert (model.dropout, made.training.batch_size, search.width) == (0.3, 64, 5)
    assert made.training.learning_rate == 0.001
