"""Where a model looked while it wrote an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fenchel.data import Codec, Example
from fenchel.data.vocabulary import EOS
from fenchel.models.seq2seq.model import Seq2Seq

END = "end"


@dataclass(frozen=True)
class Look:
    """The attention of one answer: a row for every symbol written, the end included."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]


@torch.no_grad()
def look(model: Seq2Seq, codec: Codec, example: Example, tokens: Sequence[int]) -> Look:
    """The attention weights while the model writes `tokens`."""
    device = next(model.parameters()).device
    source = torch.tensor([codec.encode_source(example)])
    target = torch.tensor([[*tokens, EOS]], device=device)
    seen = model.attend(source.to(device), torch.tensor([source.shape[1]]), target)
    written = [*codec.target_vocabulary.symbols(tokens), END]
    return Look(codec.source_symbols(example), written, seen.attention[0].tolist())
