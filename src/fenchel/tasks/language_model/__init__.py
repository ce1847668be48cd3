"""Language models on plain text."""

from fenchel.tasks.language_model.task import LanguageModelTask
from fenchel.tasks.language_model.texts import LanguageModelProcessor

__all__ = ["LanguageModelProcessor", "LanguageModelTask"]
