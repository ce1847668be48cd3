"""A recipe is a whole configuration, and survives being stored."""

from __future__ import annotations

import json

import pytest

from fenchel import FenchelError
from fenchel.recipes import RECIPES, Recipe, recipe, settings
from fenchel.recipes.meanings import meanings
from fenchel.schema import from_json


@pytest.mark.parametrize("name", RECIPES)
def test_a_stored_recipe_is_the_same_again(name):
    made = recipe(name, ["training.epochs=3", "attention_alpha=learned"])
    stored = json.loads(json.dumps(made.state()))
    assert from_json(Recipe, stored, "recipe") == made
    assert made.name == name
    assert made.summary[0].islower()
    assert not made.summary.endswith(".")


@pytest.mark.parametrize("name", RECIPES)
def test_every_setting_says_what_it_means(name):
    made = recipe(name)
    assert list(meanings(made)) == list(settings(made))


def test_a_stored_recipe_of_another_version_is_refused():
    state = recipe("inflection").state()
    with pytest.raises(FenchelError, match="recipe: model must not have the key 'sizes'"):
        from_json(Recipe, {**state, "model": {"sizes": 3}}, "recipe")
    with pytest.raises(FenchelError, match="recipe must have the key 'summary'"):
        from_json(Recipe, {"name": "inflection"}, "recipe")


TOO_SMALL = ("min_count=0", "merges=-1", "width=0", "max_length=0", "sentences=0")
TOO_LARGE = ("width=1000000000", "max_length=1000000000")


@pytest.mark.parametrize("wrong", [*TOO_SMALL, *TOO_LARGE, "held_out=1", "held_out=-0.1"])
def test_a_setting_that_only_search_or_data_need_is_refused_before_training(wrong):
    with pytest.raises(FenchelError, match=wrong.partition("=")[0]):
        recipe("inflection", [wrong])


def test_the_inflection_recipe_is_the_papers():
    made = recipe("inflection")
    assert (made.model.hidden_size, made.model.embedding_size, made.model.layers) == (300, 300, 2)
    assert (made.model.dropout, made.training.batch_size, made.search.width) == (0.3, 64, 5)
    assert made.training.learning_rate == 0.001
