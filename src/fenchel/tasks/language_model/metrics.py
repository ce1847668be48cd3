"""Metrics of language models whose probabilities may be zero."""

from __future__ import annotations

from typing import Any

import torch

from fenchel.data.batches import LengthBuckets
from fenchel.tasks.language_model.texts import LanguageModelData

EPSILON = 1e-6


@torch.no_grad()
def smoothed_metrics(
    model: Any, data: LanguageModelData, batch: tuple[int, int | None]
) -> dict[str, float]:
    """Metrics that exist where the perplexity does not, because a symbol has probability zero.

    - "eps_perplexity": the perplexity of (p + ε) / (1 + ε V), with ε = 1e-6 and V symbols.
    - "sparsemax_score": the mean of 1 − ½ ‖e − p‖², where e is the symbol as a one-hot vector.

    Reference: Martins, Marinho & Martins (2020), *Sparse Text Generation*.

    Args:
        model: A `LanguageModel` in evaluation mode.
        data: Texts on its device.
        batch: Maximum numbers of texts and of symbols per batch.
    """
    sums = torch.zeros(3, dtype=torch.float64)
    size, symbols = batch
    for index in LengthBuckets(data, size, batch_tokens=symbols, shuffle=False).batches():
        tokens, lengths = data.batch(index)
        seen = model.attend(tokens, lengths)
        correct = seen.probabilities.gather(-1, tokens.unsqueeze(-1)).squeeze(-1).double()
        gini = (1 - seen.probabilities.double().square().sum(-1)) / 2
        smoothed = (correct + EPSILON) / (1 + EPSILON * seen.probabilities.shape[-1])
        valid = seen.valid.double()
        parts = smoothed.log() * valid, (correct + gini) * valid, valid
        sums += torch.stack([part.sum() for part in parts]).cpu()
    logarithm, score, count = sums.tolist()
    return {
        "eps_perplexity": torch.tensor(-logarithm / count).exp().item(),
        "sparsemax_score": score / count,
    }
