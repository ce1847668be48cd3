"""The task of natural-language inference: a premise and a hypothesis to their label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from fenchel.data.texts import SentencePair
from fenchel.models.nli import EntailmentClassifier, EntailmentConfig
from fenchel.tasks.texts.task import TextTask


@final
@dataclass(frozen=True, kw_only=True)
class EntailmentTask(TextTask):
    """A premise and a hypothesis to their label, with attention over the words of the premise."""

    kind = "nli"
    example = SentencePair

    max_words: int = 80
    """Maximum number of words of a text; the rest is cut off."""
    model: EntailmentConfig = field(default_factory=EntailmentConfig)

    def build_model(self) -> EntailmentClassifier:
        return EntailmentClassifier(self.model)
