"""Recipes: one task a file, each a function that returns a full configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fenchel.errors import unknown
from fenchel.recipes.inflection import inflection
from fenchel.recipes.overrides import override, settings
from fenchel.recipes.recipe import DataConfig, Recipe, SearchConfig
from fenchel.recipes.summarization import summarization
from fenchel.recipes.translation import translation

RECIPES: dict[str, Callable[[], Recipe]] = {
    "inflection": inflection,
    "translation": translation,
    "summarization": summarization,
}


def recipe(name: str, changes: Iterable[str] = ()) -> Recipe:
    """The recipe of that name, with some settings changed.

    >>> recipe("inflection", ["output_alpha=2", "hidden_size=128"]).model.output_alpha
    2.0
    """
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return override(RECIPES[name](), changes)


__all__ = ["RECIPES", "DataConfig", "Recipe", "SearchConfig", "override", "recipe", "settings"]
