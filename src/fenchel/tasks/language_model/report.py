"""What a report shows of a language model: its attention to the symbols before."""

from __future__ import annotations

from typing import Any

import torch

from fenchel.data.vocabulary import EOS
from fenchel.report import Figure, attention_map
from fenchel.training.run import Run

START, END = "start", "end"


def attention_of_text(run: Run, text: str) -> Figure:
    """The attention for every symbol of a text, and for its end."""
    processor: Any = run.processor
    model: Any = run.model
    symbols, ids = processor.symbols(text), [*processor.ids(text), EOS]
    tokens = torch.tensor([ids], device=next(model.parameters()).device)
    seen = model.eval().attend(tokens, torch.tensor([len(ids)]))
    weights = seen.attention[0].tolist()
    return attention_map(weights, [START, *symbols], [*symbols, END], f"Attention in: {text}")
