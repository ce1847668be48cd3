"""The task of text classification: the words of a document to its label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from fenchel.data.texts import Document
from fenchel.models.documents import DocumentClassifier, DocumentClassifierConfig
from fenchel.tasks.texts.task import TextTask


@final
@dataclass(frozen=True, kw_only=True)
class DocumentTask(TextTask):
    """A text to its label, with attention over the words."""

    kind = "documents"
    example = Document

    model: DocumentClassifierConfig = field(default_factory=DocumentClassifierConfig)

    @property
    def model_sizes(self) -> Mapping[str, int]:
        sizes = {**super().model_sizes, "kernel_size": self.model.kernel_size}
        if self.model.attention != "discrete":
            sizes["attention_bases"] = self.model.attention_bases
        return sizes

    def build_model(self) -> DocumentClassifier:
        return DocumentClassifier(self.model)
