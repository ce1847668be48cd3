"""Recipes: functions that return a full configuration, by the name that `fenchel train` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fenchel.errors import unknown
from fenchel.recipes import language_model, multilabel, sequences, texts, visual_questions
from fenchel.settings import override
from fenchel.training import Recipe
from fenchel.training.recipe import StoredConfig

RECIPES: dict[str, Callable[[], Recipe]] = {
    "inflection": sequences.inflection,
    "transduction": sequences.transduction,
    "transformer": sequences.transformer,
    "translation": sequences.translation,
    "summarization": sequences.summarization,
    "language-model": language_model.language_model,
    "documents": texts.documents,
    "nli": texts.nli,
    "vqa": visual_questions.visual_questions,
    "multilabel": multilabel.multilabel,
}
PRESETS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "small": {
        "inflection": sequences.SMALL,
        "transduction": sequences.SMALL,
        "transformer": sequences.SMALL_TRANSFORMER,
        "translation": sequences.SMALL,
        "summarization": sequences.SMALL,
        "language-model": language_model.SMALL,
        "documents": texts.SMALL,
        "nli": texts.SMALL_NLI,
        "vqa": visual_questions.SMALL,
        "multilabel": multilabel.SMALL,
    }
}
"""Settings of each recipe, by the name of the preset."""


def make_recipe(
    name: str,
    changes: Iterable[str] = (),
    preset: str | None = None,
    config: StoredConfig | None = None,
) -> Recipe:
    """The recipe of that name with the settings of a preset, then of a file, then with changes.

    >>> make_recipe("inflection", ["output_alpha=2"], preset="small").task.model.hidden_size
    128
    """
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES, "All recipes: fenchel list")
    if preset is not None and preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    settings = () if preset is None else PRESETS[preset].get(name, ())
    recipe = override(RECIPES[name](), settings)
    if config is not None:
        recipe = override(recipe, config.settings, f"{config.path}:")
    return override(recipe, changes)


__all__ = ["PRESETS", "RECIPES", "make_recipe"]
