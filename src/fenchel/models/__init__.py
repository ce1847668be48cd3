"""Models with the library's maps inside and its losses at the output; one architecture per module."""

from fenchel.models.documents import DocumentClassifier, DocumentClassifierConfig
from fenchel.models.nli import EntailmentClassifier, EntailmentConfig
from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig
from fenchel.models.transformer import (
    LanguageModel,
    LanguageModelConfig,
    Transformer,
    TransformerConfig,
)
from fenchel.models.visual_questions import VisualQuestionConfig, VisualQuestionModel

__all__ = [
    "DocumentClassifier",
    "DocumentClassifierConfig",
    "EntailmentClassifier",
    "EntailmentConfig",
    "LanguageModel",
    "LanguageModelConfig",
    "Seq2Seq",
    "Seq2SeqConfig",
    "Transformer",
    "TransformerConfig",
    "VisualQuestionConfig",
    "VisualQuestionModel",
]
