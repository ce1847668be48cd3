"""Natural-language inference: two GRUs, and attention of the hypothesis to the premise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from fenchel.mechanisms.masks import check_lengths, within
from fenchel.mechanisms.recurrent import AdditiveAttention
from fenchel.models.attention_maps import ATTENTION_MAPS, attention_map, learned_alpha
from fenchel.models.text_classifier import Attended, TextClassifier, TextClassifierConfig

NO_ATTENTION = "none"


@dataclass(frozen=True)
class EntailmentConfig(TextClassifierConfig):
    """Settings of an `EntailmentClassifier`.

    >>> EntailmentConfig(vocabulary_size=20_000, classes=3, attention_map="none").dropout
    0.1
    """

    maps = (NO_ATTENTION, *ATTENTION_MAPS)

    hidden_size: int = 128
    """Size of the projected words, of the states of the GRUs and of the attention."""
    dropout: float = 0.1
    """Dropout of the word embeddings and of the input of the output layer."""
    attention_map: str = "entmax"
    """Map from scores to attention weights: "none" (the last state of the premise instead of attention),
    "softmax", "sparsemax", "logistic" (independent weights), "entmax", "normmax", "budget", "fusedmax",
    "oscarmax" or "pnormmax"."""


@final
class PaperGRU(nn.Module):
    r"""A gated recurrent unit whose reset gate is applied before the product with the state's weights.

    z, r = σ(W x_t + U h_{t−1} + b),  h̄ = tanh(W′x_t + U′(r ⊙ h_{t−1}) + b′),  h_t = (1−z) h_{t−1} + z h̄.
    `torch.nn.GRU` computes r ⊙ (U′h_{t−1}) instead.

    Reference: Cho et al. (2014), *Learning Phrase Representations using RNN Encoder–Decoder*.

    >>> states, last = PaperGRU(4, 6)(torch.randn(2, 5, 4), torch.tensor([5, 3]))
    >>> states.shape, last.equal(torch.stack([states[0, 4], states[1, 2]]))
    (torch.Size([2, 5, 6]), True)
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(input_size, 3 * hidden_size)
        self.gates = nn.Linear(hidden_size, 2 * hidden_size, bias=False)
        self.candidate = nn.Linear(hidden_size, hidden_size, bias=False)
        bound = 1 / math.sqrt(hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(
        self, words: Tensor, lengths: Tensor, start: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The states (B, S, H) and the last state (B, H) of each text.

        Args:
            words: (B, S, input_size).
            lengths: integers (B,), the number of words of each text.
            start: (B, H), the state before the first word; zeros unless given.
        """
        size = self.candidate.in_features
        state = words.new_zeros(len(words), size) if start is None else start
        gate_weight, weight = self.gates.weight.t(), self.candidate.weight.t()
        states = []
        for inputs in self.inputs(words.transpose(0, 1)).unbind():
            of_gates, of_candidate = inputs.split([2 * size, size], -1)
            update, reset = torch.addmm(of_gates, state, gate_weight).sigmoid().chunk(2, -1)
            candidate = torch.addmm(of_candidate, reset * state, weight).tanh()
            state = torch.lerp(state, candidate, update)
            states.append(state)
        stacked = torch.stack(states, 1)
        last = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, size)
        return stacked, stacked.gather(1, last).squeeze(1)


@final
class EntailmentClassifier(TextClassifier):
    r"""Classifies pairs of a premise and a hypothesis; the hypothesis attends to words of the premise.

    The words, projected, are read by two GRUs: one reads the premise, h_1 … h_L, the other goes on from
    its last state with the hypothesis, to the state h_N. With p = map(vᵀ tanh(W h_t + W′ h_N + b)) and
    r = Σ p_t h_t, the scores of the classes are linear in tanh(U r + U′ h_N + b′). Without attention, r
    is h_L.

    Reference: Martins & Astudillo (2016), *From Softmax to Sparsemax*, §4.3.

    >>> model = EntailmentClassifier(EntailmentConfig(vocabulary_size=50, classes=3))
    >>> premise, hypothesis = torch.tensor([[4, 7, 5], [6, 8, 0]]), torch.tensor([[4], [9]])
    >>> scores, attended = model(premise, torch.tensor([3, 2]), hypothesis, torch.tensor([1, 1]))
    >>> scores.shape, attended.weights.shape, attended.weights[1, 2].item()
    (torch.Size([2, 3]), torch.Size([2, 3]), 0.0)
    """

    def __init__(self, config: EntailmentConfig) -> None:
        size = config.hidden_size
        super().__init__(config)
        self.projection = nn.Linear(config.embedding_size, size)
        self.premise, self.hypothesis = PaperGRU(size, size), PaperGRU(size, size)
        self.attention: AdditiveAttention | None = None
        if config.attention_map != NO_ATTENTION:
            chosen = config.attention_map, config.attention_alpha, config.attention_strength
            self.attention = AdditiveAttention(size, size, size, attention_map(*chosen))
        self.of_premise = nn.Linear(size, size)
        self.of_hypothesis = nn.Linear(size, size, bias=False)
        self.output = nn.Linear(size, config.classes)

    def forward(
        self,
        premise: Tensor,
        premise_lengths: Tensor,
        hypothesis: Tensor,
        hypothesis_lengths: Tensor,
    ) -> tuple[Tensor, Attended]:
        """Scores of the classes (B, C) and the weights of the words of the premise (B, S).

        Args:
            premise, hypothesis: integers (B, S) and (B, T), padded with 0 at the end of each text.
            premise_lengths, hypothesis_lengths: integers (B,), the numbers of words.
        """
        for tokens, lengths in ((premise, premise_lengths), (hypothesis, hypothesis_lengths)):
            check_lengths(lengths, tokens.shape[:1], tokens.shape[1], tokens)
        states, last = self.premise(self._words(premise), premise_lengths)
        _, query = self.hypothesis(self._words(hypothesis), hypothesis_lengths, last)
        weights = None
        if self.attention is not None:
            valid = within(premise_lengths, premise.shape[1])
            last, weights = self.attention(query, states, mask=valid)
        features = torch.tanh(self.of_premise(last) + self.of_hypothesis(query))
        return self.output(self.dropped(features)), Attended(weights)

    def alphas(self) -> dict[str, Tensor]:
        """The α of the attention under the name "attention", if it is learned."""
        return {} if self.attention is None else learned_alpha(self.attention.map)

    def _words(self, tokens: Tensor) -> Tensor:
        return self.projection(self.dropped(self.embedding(tokens)))
