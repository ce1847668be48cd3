"""Small Transformer models for tests."""

from __future__ import annotations

from typing import Any

import torch

from fenchel.models import Transformer, TransformerConfig
from tests.models.batches import SOURCE, TARGET

SIZES: dict[str, Any] = {
    "hidden_size": 8,
    "heads": 2,
    "layers": 2,
    "feedforward_size": 12,
    "dropout": 0.0,
    "max_positions": 30,
}
ATTENTIONS: list[dict[str, Any]] = [
    {"attention_map": "softmax"},
    {"attention_alpha": 1.5},
    {"attention_alpha": "learned", "output_alpha": 1.5},
    {"attention_alpha": "learned", "tie_alpha": True, "alpha_start": 1.3},
    {"attention_map": "softmax", "context_alpha": 1.5, "decoder_alpha": "learned"},
]


def small_transformer(*, spread: float = 2.0, **choices: Any) -> Transformer:
    """A model in float64 whose weights are large enough for sparse attention and output."""
    torch.manual_seed(1)
    given = {"source_size": SOURCE, "target_size": TARGET, **SIZES, **choices}
    model = Transformer(TransformerConfig(**given)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(spread)
    return model
