"""The loss and the metrics that models of the next token share."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fenchel.data.vocabulary import BOS, PAD
from fenchel.errors import FenchelError
from fenchel.losses.functional import entmax_loss
from fenchel.losses.linear import linear_entmax_loss
from fenchel.maps.entmax import entmax
from fenchel.models.means import Mean, Means
from fenchel.operators.layout import at_least_float32

LARGE_VOCABULARY = 4096  # from here on the scores of all positions are not held at once


def check_symbols(name: str, symbols: Tensor, batch: int | None = None) -> None:
    """Raise unless `symbols` is a padded batch of sequences: integers (B, length)."""
    whole = not (symbols.dtype.is_floating_point or symbols.dtype.is_complex)
    if not whole or symbols.ndim != 2 or symbols.numel() == 0:
        got = f"{symbols.dtype} of shape {tuple(symbols.shape)}"
        raise FenchelError(f"{name} must be integers of shape (B, length), not empty, got {got}")
    if batch is not None and symbols.shape[0] != batch:
        got = f"{symbols.shape[0]} rows"
        raise FenchelError(f"{name} must have {batch} rows, one per source, got {got}")


def tokens_before(target: Tensor) -> Tensor:
    """The token before each position of `target` (B, T), the first being BOS.

    >>> tokens_before(torch.tensor([[5, 6, 2]]))
    tensor([[1, 5, 6]])
    """
    return torch.nn.functional.pad(target[:, :-1], (1, 0), value=BOS)


class Attended(NamedTuple):
    """The attention and the output probabilities of a model, given a target.

    `attention` (B, T, S) and `probabilities` (B, T, V), both with exact zeros; `valid` (B, T). Where
    there are several heads, `attention` is their mean, and `heads` (B, heads, T, S) are all of them.
    """

    attention: Tensor
    probabilities: Tensor
    valid: Tensor
    heads: Tensor | None = None

    @property
    def attention_support(self) -> Tensor:
        """The number of positions attended, (B, T), on average over the heads."""
        return attended_positions(self.attention if self.heads is None else self.heads)

    @property
    def output_support(self) -> Tensor:
        """The number of tokens considered, (B, T)."""
        return (self.probabilities > 0).sum(-1)


def attended_positions(weights: Tensor) -> Tensor:
    """The number of non-zero weights (B, T) of (B, T, S), or its mean over the heads of (B, heads, T, S).

    >>> attended_positions(torch.tensor([[[[0.5, 0.5]], [[0.0, 1.0]]]]))
    tensor([[1.5000]])
    """
    counts = (weights > 0).sum(-1)
    return counts if weights.ndim == 3 else counts.float().mean(1)


def next_token_means(
    output: nn.Linear,
    hidden: Tensor,
    target: Tensor,
    alpha: float,
    weights: Tensor | None = None,
    *,
    label_smoothing: float = 0.0,
    in_chunks: bool = False,
) -> Means:
    """The loss per token and, if there are `weights`, what describes the batch.

    - "loss": the entmax loss; only its total has a gradient.
    - "accuracy": share of tokens that are the most probable one.
    - "exact": share of sequences all of whose tokens are, so that greedy search finds them.
    - "output_support": tokens of non-zero probability per position.
    - "attention_support": positions of non-zero weight per position, and per head.

    Nothing here synchronises with a GPU.

    Args:
        output: The output layer.
        hidden: Its inputs, (B, T, H).
        target: The correct tokens (B, T); those that are PAD do not count.
        alpha: α of the loss and of the probabilities.
        weights: The attention weights, (B, T, S) or (B, heads, T, S).
        label_smoothing: As in `fenchel.entmax_loss`.
        in_chunks: Whether the scores of a large vocabulary are computed in chunks for the loss.
    """
    rows, labels, scores = hidden.flatten(0, 1), target.flatten(), None
    options: dict[str, Any] = {"ignore_index": PAD, "reduction": "sum"}
    options["label_smoothing"] = label_smoothing
    if in_chunks and output.out_features >= LARGE_VOCABULARY:
        total = linear_entmax_loss(rows, output.weight, labels, alpha, bias=output.bias, **options)
    else:
        scores = at_least_float32(output(rows))
        total = entmax_loss(scores, labels, alpha, **options)
    with torch.no_grad():
        means = {"loss": Mean(total, (target != PAD).sum())}
        if weights is not None:
            scores = output(rows) if scores is None else scores
            means |= _description(scores, target, alpha, weights)
    return means


def _description(scores: Tensor, target: Tensor, alpha: float, weights: Tensor) -> Means:
    valid = target != PAD
    right = scores.argmax(-1).view_as(target) == target
    considered = (entmax(scores, alpha) > 0).sum(-1).view_as(target)
    attended = attended_positions(weights)
    tokens, sequences = valid.sum(), torch.full_like(valid.sum(), target.shape[0])
    return {
        "accuracy": Mean((right & valid).sum(), tokens),
        "exact": Mean((right | ~valid).all(1).sum(), sequences),
        "output_support": Mean((considered * valid).sum(), tokens),
        "attention_support": Mean((attended * valid).sum(), tokens),
    }
