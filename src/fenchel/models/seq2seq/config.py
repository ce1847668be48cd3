"""The configuration of a sequence-to-sequence model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fenchel.checks import BELOW_ZERO, check_count, check_known, check_number
from fenchel.data.vocabulary import SPECIAL
from fenchel.errors import FenchelError

ATTENTIONS = ("dot", "general", "additive")
BASIS_WIDTHS = (0.03, 0.1, 0.3)  # standard deviations of the functions of "combined" on [0, 1]
MAPS = ("softmax", "sparsemax", "entmax", "fusedmax", "oscarmax", "pnormmax", "combined")


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Settings of a `Seq2Seq` model; the defaults are those of Peters, Niculae & Martins (2019).

    >>> Seq2SeqConfig(source_size=60, target_size=40, attention_map="softmax").hidden_size
    300
    """

    source_size: int = field(default=len(SPECIAL), metadata={"derived": True})
    """Size of the source vocabulary."""
    target_size: int = field(default=len(SPECIAL), metadata={"derived": True})
    """Size of the target vocabulary."""
    embedding_size: int = 300
    """Size of the embeddings of source and target symbols."""
    hidden_size: int = 300
    """Size of the hidden states; even, because each direction of the encoder has half of it."""
    layers: int = 2
    """Number of layers of the encoder, and of the decoder."""
    dropout: float = 0.3
    """Dropout probability in the encoder and the decoder."""
    attention: str = "general"
    """Score of a query and a key: "dot", "general" (bilinear) or "additive"."""
    attention_map: str = "entmax"
    """Map from scores to attention weights: "softmax", "sparsemax", "entmax", "fusedmax", "oscarmax",
    "pnormmax", or "combined", which adds the context of a continuous attention with the same mean and
    variance to that of entmax."""
    attention_alpha: float | str = 1.5
    """Alpha of "entmax" and "combined": a number, or "learned" ("entmax" only)."""
    attention_strength: float | None = None
    """Strength of "fusedmax" and "oscarmax", p of "pnormmax"; None takes the default of the map."""
    attention_bases: int = 30
    """Number of basis functions of "combined"."""
    attention_bias: bool = False
    """Whether the output layer of the attention has a bias, as in the paper; the reproduced tables were
    trained without."""
    continuous_alpha: float | None = None
    """Alpha of the density of "combined", from 1 to 2; None takes attention_alpha."""
    output_alpha: float = 1.5
    """Alpha of the loss and of the output probabilities; 1 is cross-entropy with softmax, 2 the sparsemax
    loss with sparsemax."""
    input_feeding: bool = True
    """Whether the attention output of a step is an input of the next step."""
    share_embeddings: bool = False
    """Whether target embeddings and output layer share their weights."""

    def __post_init__(self) -> None:
        for name in ("source_size", "target_size", "embedding_size", "hidden_size", "layers"):
            check_count(getattr(self, name), name)
        check_count(self.attention_bases, "attention_bases")
        if self.hidden_size % 2:
            raise FenchelError(f"hidden_size must be even, got {self.hidden_size}")
        if not 0 <= self.dropout < 1:
            raise FenchelError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        check_known("attention", self.attention, ATTENTIONS)
        check_known("attention_map", self.attention_map, MAPS)
        check_number(self.output_alpha, name="output_alpha", above=0)
        self._check_alpha()
        if self.attention_strength is not None:
            above = 1 if self.attention_map == "pnormmax" else BELOW_ZERO
            check_number(self.attention_strength, name="attention_strength", above=above)
        if self.attention_map == "combined":
            self._check_combined()
        if self.share_embeddings and self.embedding_size != self.hidden_size:
            raise FenchelError(
                "share_embeddings requires equal embedding_size and hidden_size, got "
                f"{self.embedding_size} and {self.hidden_size}"
            )

    def _check_alpha(self) -> None:
        alpha, learnable = self.attention_alpha, self.attention_map == "entmax"
        if alpha == "learned" and learnable:
            return
        if isinstance(alpha, (str, bool)) or not 0 < alpha < math.inf:
            choices = ' or "learned"' if learnable else ""
            raise FenchelError(f"attention_alpha must be a positive number{choices}, got {alpha!r}")

    @property
    def density_alpha(self) -> float:
        """Alpha of the continuous part of "combined"."""
        own = self.continuous_alpha
        return float(self.attention_alpha if own is None else own)

    def _check_combined(self) -> None:
        if not 1 <= self.density_alpha <= 2:
            name = "attention_alpha" if self.continuous_alpha is None else "continuous_alpha"
            got = self.density_alpha
            raise FenchelError(f'{name} must be from 1 to 2 with "combined", got {got}')
        if self.attention_bases % len(BASIS_WIDTHS):
            got = self.attention_bases
            raise FenchelError(
                f"attention_bases must be a multiple of {len(BASIS_WIDTHS)}, got {got}"
            )
