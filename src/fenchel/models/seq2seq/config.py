"""What a sequence-to-sequence model is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fenchel.checks import BELOW_ZERO, check_known, check_number
from fenchel.errors import rule

ATTENTIONS = ("dot", "general", "additive")
BASIS_WIDTHS = (0.03, 0.1, 0.3)  # standard deviations of the functions of "combined" on [0, 1]
MAPS = ("softmax", "sparsemax", "entmax", "fusedmax", "oscarmax", "pnormmax", "combined")


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes and choices of a `Seq2Seq` model; the defaults are those of the paper's inflection.

    Args:
        source_size, target_size: the sizes of the vocabularies.
        embedding_size, hidden_size: `hidden_size` is even, half for each direction of the encoder.
        layers, dropout: of the encoder and of the decoder.
        attention: how a query and a key make a score: "dot", "general" or "additive".
        attention_map: how scores become weights: "softmax", "sparsemax", "entmax", "fusedmax",
            "oscarmax", "pnormmax", or "combined": α-entmax, to whose context that of the continuous
            attention with its mean and variance is added.
        attention_alpha: α of "entmax" and of "combined": a number, or "learned" ("entmax" only).
        attention_strength: of "fusedmax" and "oscarmax"; p of "pnormmax". The map's default if None.
        attention_bases: the number of basis functions of "combined".
        continuous_alpha: α of the density of "combined", from 1 to 2; `attention_alpha` if None.
        output_alpha: α of the loss and of the output's probabilities; 1 is cross-entropy and softmax,
            2 the sparsemax loss and sparsemax.
        input_feeding: what attention saw at a step is an input of the next one.
        share_embeddings: the embeddings of the target are the weights of the output layer.

    >>> Seq2SeqConfig(source_size=60, target_size=40, attention_map="softmax").hidden_size
    300
    """

    source_size: int
    target_size: int
    embedding_size: int = 300
    hidden_size: int = 300
    layers: int = 2
    dropout: float = 0.3
    attention: str = "general"
    attention_map: str = "entmax"
    attention_alpha: float | str = 1.5
    attention_strength: float | None = None
    attention_bases: int = 30
    continuous_alpha: float | None = None
    output_alpha: float = 1.5
    input_feeding: bool = True
    share_embeddings: bool = False

    def __post_init__(self) -> None:
        counts = ("source_size", "target_size", "embedding_size", "hidden_size", "layers")
        for name in (*counts, "attention_bases"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise rule(f"{name} is a size", expected="an integer of at least 1", got=value)
        if self.hidden_size % 2:
            raise rule("the encoder has two directions", expected="even", got=self.hidden_size)
        if not 0 <= self.dropout < 1:
            raise rule("dropout is a share", expected="a number in [0, 1)", got=self.dropout)
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
            got = f"{self.embedding_size} and {self.hidden_size}"
            raise rule("shared embeddings have the hidden size", expected="equal sizes", got=got)

    def _check_alpha(self) -> None:
        alpha, learned = self.attention_alpha, self.attention_map == "entmax"
        if alpha == "learned" and learned:
            return
        if isinstance(alpha, (str, bool)) or not 0 < alpha < math.inf:
            expected = "a number above 0" + (', or "learned"' if learned else "")
            raise rule("attention_alpha is an α", expected=expected, got=repr(alpha))

    @property
    def density_alpha(self) -> float:
        """α of the continuous part of "combined"."""
        own = self.continuous_alpha
        return float(self.attention_alpha if own is None else own)

    def _check_combined(self) -> None:
        if not 1 <= self.density_alpha <= 2:
            statement = "continuous_alpha, or else attention_alpha, is the α of a density"
            raise rule(statement, expected="a number from 1 to 2", got=self.density_alpha)
        if self.attention_bases % len(BASIS_WIDTHS):
            expected, got = f"a multiple of {len(BASIS_WIDTHS)} widths", self.attention_bases
            raise rule("attention_bases are of several widths", expected=expected, got=got)
