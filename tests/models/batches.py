"""Small random batches and models."""

from __future__ import annotations

from typing import Any

import torch

from fenchel.data.vocabulary import EOS, PAD
from fenchel.models import Seq2Seq, Seq2SeqConfig
from fenchel.models.seq2seq.config import MAPS
from fenchel.tasks.sequences.encoded import Batch

SOURCE, TARGET = 20, 15
EVERY_MAP = (*MAPS, "learned", "combined sparsemax")


def with_map(name: str) -> dict[str, Any]:
    """The choices of a model with this attention; "combined" alone has no closed form."""
    learned = {"attention_map": "entmax", "attention_alpha": "learned"}
    sparse = {"attention_map": "combined", "attention_alpha": 1.0, "continuous_alpha": 2.0}
    named = {"learned": learned, "combined sparsemax": sparse}
    return named.get(name, {"attention_map": name})


def random_batch(size: int = 5, source: int = 7, target: int = 6, seed: int = 0) -> Batch:
    """Rows of different lengths; the first has all symbols."""
    draw = torch.Generator().manual_seed(seed)

    def rows(length: int, symbols: int) -> tuple[torch.Tensor, torch.Tensor]:
        lengths = torch.randint(2, length + 1, (size,), generator=draw)
        lengths[0] = length
        values = torch.randint(4, symbols, (size, length), generator=draw)
        return values.masked_fill(torch.arange(length) >= lengths[:, None], PAD), lengths

    sources, source_lengths = rows(source, SOURCE)
    targets, target_lengths = rows(target, TARGET)
    targets[torch.arange(size), target_lengths - 1] = EOS
    return Batch(sources, source_lengths, targets, torch.arange(size))


def small_model(*, spread: float = 5.0, **choices: Any) -> Seq2Seq:
    """A model in float64 whose weights are large enough for sparse attention and output."""
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"embedding_size": 6, "hidden_size": 8, "layers": 2, "dropout": 0.0}
    model = Seq2Seq(Seq2SeqConfig(SOURCE, TARGET, **{**sizes, **choices})).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread)
    return model
