"""Measures of attention weights, per query; Correia, Niculae & Martins (2019), section 5.

Weights are (B, heads, L, S), and zero where a query cannot see a key. `visible` is (B, 1 or heads, L, S),
True where it can. A measure comes with the queries, or words, of which it is defined.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Measured(NamedTuple):
    """Values of a measure, and where it is defined; both (B, heads, N), or broadcast to that."""

    values: Tensor
    defined: Tensor


def density(weights: Tensor, visible: Tensor) -> Measured:
    """The share of the visible keys whose weight is not zero.

    >>> weights = torch.tensor([[[[0.5, 0.5, 0.0, 0.0]]]])
    >>> density(weights, torch.tensor([[[[True, True, True, False]]]])).values
    tensor([[[0.6667]]])
    """
    keys = visible.sum(-1)
    return Measured((weights != 0).sum(-1) / keys.clamp(min=1), keys > 0)


def entropy(weights: Tensor) -> Tensor:
    """The entropy of the weights of each query, (B, heads, L).

    >>> entropy(torch.tensor([[[[0.5, 0.5, 0.0, 0.0]]]]))  # log 2
    tensor([[[0.6931]]])
    """
    return torch.special.entr(weights).sum(-1)


def uncertainty(entropies: Tensor, visible: Tensor) -> Measured:
    """The entropy of the weights divided by its maximum, log n for n visible keys.

    A query that sees a single key is left out.

    >>> weights = torch.tensor([[[[0.5, 0.5, 0.0, 0.0]]]])
    >>> uncertainty(entropy(weights), torch.ones(1, 1, 1, 4, dtype=torch.bool)).values
    tensor([[[0.5000]]])
    """
    keys = visible.sum(-1)
    return Measured(entropies / _largest_entropy(keys), keys > 1)


def diversity(weights: Tensor, entropies: Tensor, visible: Tensor) -> Measured:
    """The Jensen–Shannon divergence of the heads, in [0, 1]; (B, 1, L).

    H(mean_j p_j) − mean_j H(p_j), divided by the largest entropy, log n for n visible keys. A query that
    sees a single key is left out, because its heads cannot differ.

    >>> weights = torch.eye(2).view(1, 2, 1, 2)  # two heads with one key each
    >>> diversity(weights, entropy(weights), torch.ones(1, 1, 1, 2, dtype=torch.bool)).values
    tensor([[[1.]]])
    """
    keys = visible.any(1, keepdim=True).sum(-1)
    difference = entropy(weights.mean(1, keepdim=True)) - entropies.mean(1, keepdim=True)
    return Measured((difference / _largest_entropy(keys)).clamp(min=0), keys > 1)


def weight_at(offset: int, weights: Tensor, visible: Tensor, start: int = 0) -> Measured:
    """The weight on the key at an offset from the query, where the query can see that key.

    >>> weights = torch.tensor([[[[1.0, 0.0], [0.25, 0.75]]]])
    >>> weight_at(-1, weights, torch.ones(1, 1, 2, 2, dtype=torch.bool)).values
    tensor([[[0.2500]]])
    """
    place = {"offset": start + offset, "dim1": -2, "dim2": -1}
    return Measured(weights.diagonal(**place), visible.diagonal(**place))


def merging(weights: Tensor, words: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """How much of its weight a head puts on the rest of a word: a score (B, heads, W) for each word.

    The score is the maximum over the tokens of a word of their weight on its other tokens. If the word
    is a single token, it is the weight of the token on itself.

    Args:
        weights: of self-attention, (B, heads, L, L).
        words: (B, L), the number of the word of each token, −1 for tokens that are no word.
        count: W, the number of words in the longest sentence.

    Returns:
        The scores, and the number of tokens of each word, (B, 1, W).

    >>> weights = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    >>> merging(weights.view(1, 1, 3, 3), torch.tensor([[0, 0, 1]]), count=2)
    (tensor([[[1.0000, 0.7500]]]), tensor([[[2, 1]]]))
    """
    same = _same_word(words)
    sizes = same.sum(-1).unsqueeze(1)
    own = weights.diagonal(dim1=-2, dim2=-1)
    rest = (weights * same.unsqueeze(1)).sum(-1) - own
    is_word = (words >= 0).unsqueeze(1)
    scores = torch.where(sizes == 1, own, rest).clamp(0, 1) * is_word
    places = words.clamp(min=0).unsqueeze(1)
    by_word = scores.new_zeros(*scores.shape[:2], count)
    by_word = by_word.scatter_reduce(2, places.expand_as(scores), scores, "amax")
    tokens = sizes.new_zeros(words.shape[0], 1, count)
    return by_word, tokens.scatter_reduce(2, places, sizes, "amax")


def weight_on_word(weights: Tensor, words: Tensor) -> Measured:
    """The weight of each token on all tokens of its word, its own included.

    >>> weights = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.25, 0.25], [0.0, 0.25, 0.75]])
    >>> weight_on_word(weights.view(1, 1, 3, 3), torch.tensor([[0, 0, 1]])).values
    tensor([[[1.0000, 0.7500, 0.7500]]])
    """
    same = _same_word(words).unsqueeze(1)
    return Measured((weights * same).sum(-1).clamp(max=1), (words >= 0).unsqueeze(1))


def weight_on(keys: Tensor, weights: Tensor, visible: Tensor) -> Measured:
    """The weight of each query on some keys, (B, S), where it can see one of them.

    >>> weights = torch.tensor([[[[0.5, 0.25, 0.25]]]])
    >>> visible = torch.ones(1, 1, 1, 3, dtype=torch.bool)
    >>> weight_on(torch.tensor([[False, True, True]]), weights, visible).values
    tensor([[[0.5000]]])
    """
    marked = keys[:, None, None]
    return Measured((weights * marked).sum(-1).clamp(max=1), (visible & marked).any(-1))


def _largest_entropy(keys: Tensor) -> Tensor:
    return keys.clamp(min=2).log()


def _same_word(words: Tensor) -> Tensor:
    """(B, L, L), True for tokens of one word."""
    return (words.unsqueeze(2) == words.unsqueeze(1)) & (words >= 0).unsqueeze(2)
