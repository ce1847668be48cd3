"""Transformers with α-entmax attention: an encoder–decoder and a language model."""

from fenchel.models.transformer.config import LanguageModelConfig, TransformerConfig
from fenchel.models.transformer.language_model import LanguageModel
from fenchel.models.transformer.model import Transformer
from fenchel.models.transformer.stepper import LanguageModelStepper, TransformerStepper

__all__ = [
    "LanguageModel",
    "LanguageModelConfig",
    "LanguageModelStepper",
    "Transformer",
    "TransformerConfig",
    "TransformerStepper",
]
