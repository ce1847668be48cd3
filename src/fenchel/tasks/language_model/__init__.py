"""Language models on plain text."""

from fenchel.tasks.language_model.task import LanguageModelTask
from fenchel.tasks.language_model.texts import TextProcessor

__all__ = ["LanguageModelTask", "TextProcessor"]
