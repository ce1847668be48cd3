"""Classification of documents: encoded words, discrete or continuous attention, and the output."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.checks import check_count, check_known, check_number
from fenchel.continuous.basis import GaussianBasis
from fenchel.continuous.mixture import Mixture
from fenchel.continuous.positions import positions_within
from fenchel.errors import FenchelError
from fenchel.mechanisms.masks import check_lengths, within
from fenchel.mechanisms.recurrent import AdditiveAttention
from fenchel.models.attention_maps import UNNORMALIZED, attention_map, learned_alpha
from fenchel.models.text_classifier import Attended, TextClassifier, TextClassifierConfig
from fenchel.nn.continuous import PENALTY, ContinuousAttention1d

ENCODERS = ("convolution", "lstm")
ATTENTIONS = ("discrete", "pooled", "moments", "combined")
BASIS_WIDTHS = (0.1, 0.5)  # standard deviations of the basis functions on [0, 1]
UNIFORM_VARIANCE = 1 / 12  # of the uniform density on [0, 1]
SAMPLES = 8  # of the density, per word


@dataclass(frozen=True)
class DocumentClassifierConfig(TextClassifierConfig):
    """Settings of a `DocumentClassifier`.

    >>> DocumentClassifierConfig(vocabulary_size=20_000, classes=2, attention_map="softmax").encoder
    'convolution'
    """

    hidden_size: int = 128
    """Hidden size of the attention and of each direction of the LSTM; either encoder encodes a word in
    twice as many values."""
    encoder: str = "convolution"
    """Encoder of the words: "convolution", which is fast on a CPU, or "lstm", which is bidirectional."""
    kernel_size: int = 3
    """Width of convolutions in words, an odd number."""
    attention: str = "discrete"
    """Attention to words, "discrete", or to an interval of the text: "pooled", whose density is computed
    from the text, "moments", which has the mean and the variance of the discrete attention, or
    "combined", which adds the contexts of discrete attention and of its moments."""
    attention_bases: int = 64
    """Number of basis functions of continuous attention, even."""
    continuous_alpha: float = 2.0
    """α of the density of continuous attention, from 1 (Gaussian) to 2 (truncated parabola)."""
    ridge_penalty: float = PENALTY
    """Penalty of the regression by which the words become a function."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.kernel_size, "kernel_size")
        if self.kernel_size % 2 == 0:
            raise FenchelError(f"kernel_size must be odd, got {self.kernel_size}")
        check_known("encoder", self.encoder, ENCODERS)
        check_known("attention", self.attention, ATTENTIONS)
        check_count(self.attention_bases, "attention_bases")
        if self.attention_bases % len(BASIS_WIDTHS):
            raise FenchelError(f"attention_bases must be even, got {self.attention_bases}")
        if not 1 <= self.continuous_alpha <= 2:
            raise FenchelError(f"continuous_alpha must be from 1 to 2, got {self.continuous_alpha}")
        check_number(self.ridge_penalty, name="ridge_penalty", above=0)
        if self.attention in ("moments", "combined") and self.attention_map in UNNORMALIZED:
            raise FenchelError(
                f"attention {self.attention} requires weights that sum to one, which those of "
                f"{self.attention_map} do not"
            )


@final
class ConvolutionEncoder(nn.Module):
    """Encodes each word together with its neighbours; beyond the ends of a document there are zeros."""

    def __init__(self, input_size: int, output_size: int, kernel_size: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(input_size, output_size, kernel_size, padding="same")

    def forward(self, words: Tensor, lengths: Tensor | None = None) -> Tensor:
        return F.relu(self.convolution(words.mT)).mT


@final
class LSTMEncoder(nn.Module):
    """A bidirectional LSTM; the second direction starts at the last word of each document.

    Padding is at the end for both directions, so that no batch is packed, which would read the lengths
    on the host.
    """

    def __init__(self, input_size: int, output_size: int) -> None:
        super().__init__()
        self.onwards = nn.LSTM(input_size, output_size // 2, batch_first=True)
        self.backwards = nn.LSTM(input_size, output_size // 2, batch_first=True)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        places = torch.arange(words.shape[1], device=words.device)
        mirrored = lengths.unsqueeze(1) - 1 - places
        order = torch.where(mirrored >= 0, mirrored, places).unsqueeze(-1)
        reverse, _ = self.backwards(words.gather(1, order.expand_as(words)))
        return torch.cat([self.onwards(words)[0], reverse.gather(1, order.expand_as(reverse))], -1)


@final
class DocumentClassifier(TextClassifier):
    r"""Classifies documents by attention to their words, or to an interval of the text.

    Discrete attention has the encoded words k_i, their mean q, and the weights
    p = map(vᵀ tanh(W q + U k_i + b)); the context is Σ p_i k_i. Continuous attention spreads the words
    over [0, 1], where a ridge regression makes them a function V; the context is E_p[V(t)] for a density
    p. The scores of the classes are linear in the context, or in the sum of both.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §4.

    >>> import torch
    >>> model = DocumentClassifier(DocumentClassifierConfig(vocabulary_size=50, classes=3))
    >>> scores, attended = model(torch.tensor([[4, 7, 5], [6, 8, 0]]), torch.tensor([3, 2]))
    >>> scores.shape, attended.weights.shape, attended.weights[1, 2].item()
    (torch.Size([2, 3]), torch.Size([2, 3]), 0.0)
    """

    config: DocumentClassifierConfig

    def __init__(self, config: DocumentClassifierConfig) -> None:
        inputs, size = config.embedding_size, 2 * config.hidden_size
        super().__init__(config)
        self.encoder = (
            ConvolutionEncoder(inputs, size, config.kernel_size)
            if config.encoder == "convolution"
            else LSTMEncoder(inputs, size)
        )
        pools = config.attention == "pooled"
        self.pooling = (
            ConvolutionEncoder(inputs, config.hidden_size, config.kernel_size) if pools else None
        )
        self.attention = _attention(config, size)
        self.output = nn.Linear(size, config.classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Attended]:
        """Scores of the classes (B, C) and what is attended, which is zero at padding.

        Args:
            tokens: integers (B, S), padded with 0 at the end of each document.
            lengths: integers (B,), the number of words of each document.
        """
        check_lengths(lengths, tokens.shape[:1], tokens.shape[1], tokens)
        valid = within(lengths, tokens.shape[1])
        words = self.dropped(self.embedding(tokens))
        states = self.encoder(words, lengths)
        query = _mean(states, valid) if self.pooling is None else self._pooled(words, valid)
        if isinstance(self.attention, AdditiveAttention):
            context, weights = self.attention(query, states, mask=valid)
            return self.output(self.dropped(context)), Attended(weights)
        context, densities = self.attention(query, states, lengths)
        density = densities.at(slice(None), 0)  # of the only head
        weights = None
        if not self.training:
            weights = self._weights(query, states, valid, density)
        return self.output(self.dropped(context)), Attended(weights, density)

    def alphas(self) -> dict[str, Tensor]:
        """The α of the attention under the name "attention", if it is learned."""
        discrete = self._discrete()
        return {} if discrete is None else learned_alpha(discrete.map)

    def _pooled(self, words: Tensor, valid: Tensor) -> Tensor:
        """The largest features of the text, (B, hidden_size), from a convolution of their own."""
        features = self.pooling(words)  # pyright: ignore[reportOptionalCall]
        return features.masked_fill(~valid.unsqueeze(-1), 0.0).amax(
            1
        )  # features are never negative

    def _discrete(self) -> AdditiveAttention | None:
        """The discrete attention, which that of moments has inside; pooled attention has none."""
        if isinstance(self.attention, AdditiveAttention):
            return self.attention
        inside = getattr(self.attention.parameters_of, "attentions", None)
        return None if inside is None else inside[0]

    def _weights(self, query: Tensor, states: Tensor, valid: Tensor, density: Mixture) -> Tensor:
        """The weights of discrete attention if its context counts, else the mass on each word."""
        discrete = self._discrete()
        if self.config.attention == "combined" and discrete is not None:
            return discrete(query, states, mask=valid)[1]
        heights = density_heights(
            density, valid.sum(1), valid.shape[1], self.config.continuous_alpha
        )
        return (heights.mean(-1) / valid.sum(1, keepdim=True)).masked_fill(~valid, 0.0)


def density_heights(density: Mixture, lengths: Tensor, longest: int, alpha: float) -> Tensor:
    """The density at places within each word, (B, longest, SAMPLES), where texts fill [0, 1].

    >>> density = Mixture(torch.ones(1, 1), torch.tensor([[0.25]]), torch.tensor([[1e-3]]))
    >>> density_heights(density, torch.tensor([2]), 2, alpha=2.0).mean(-1)
    tensor([[2.0552, 0.0000]])
    """
    places = positions_within(SAMPLES * lengths, SAMPLES * longest, density.loc.dtype).t()
    distribution = density.distribution(alpha)
    points = places.unsqueeze(-1) if distribution.event_shape else places
    heights = distribution.log_prob(points).exp().t()
    if alpha == 1:  # a Gaussian is positive everywhere, even where it underflows
        heights = heights.clamp(min=torch.finfo(heights.dtype).tiny)
    return heights.unflatten(-1, (longest, SAMPLES))


def _attention(
    config: DocumentClassifierConfig, size: int
) -> AdditiveAttention | ContinuousAttention1d:
    """The attention to states of this size."""
    hidden = config.hidden_size
    chosen = config.attention_map, config.attention_alpha, config.attention_strength
    if config.attention == "discrete":
        return AdditiveAttention(size, size, hidden, attention_map(*chosen))
    basis = GaussianBasis.grid(config.attention_bases // len(BASIS_WIDTHS), BASIS_WIDTHS)
    alpha, penalty = config.continuous_alpha, config.ridge_penalty
    if config.attention == "pooled":
        pooled = ContinuousAttention1d.pooled(hidden, basis, alpha=alpha, penalty=penalty)
        # A density that starts wider reaches beyond the text, where the regression extrapolates wildly.
        spread: Any = pooled.parameters_of.spread
        nn.init.constant_(spread.bias, math.log(math.expm1(UNIFORM_VARIANCE)))
        return pooled
    discrete = AdditiveAttention(size, size, hidden, attention_map(*chosen))
    make = (
        ContinuousAttention1d.moments
        if config.attention == "moments"
        else ContinuousAttention1d.combined
    )
    return make(discrete, basis, alpha=alpha, penalty=penalty)


def _mean(states: Tensor, valid: Tensor) -> Tensor:
    """The mean of the valid states (B, S, H)."""
    total = (valid.unsqueeze(1).to(states.dtype) @ states).squeeze(1)
    return total / valid.sum(1, keepdim=True).clamp(min=1)
