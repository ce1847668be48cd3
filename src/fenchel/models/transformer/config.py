"""The configurations of the Transformer models."""

from __future__ import annotations

from dataclasses import dataclass, field

from fenchel.checks import BELOW_ZERO, check_count, check_known, check_number
from fenchel.data.vocabulary import SPECIAL
from fenchel.errors import FenchelError
from fenchel.mechanisms.exponent import check_start

MAPS = ("softmax", "entmax")
NORMS = ("pre", "post")
SHARED_EMBEDDINGS = ("none", "target", "joint")
LARGEST_MAX_POSITIONS = 2**16  # a table of all positions is allocated


@dataclass(frozen=True, kw_only=True)
class LayersConfig:
    """Settings of Transformer layers; the sizes are those of the base model of Vaswani et al. (2017)."""

    hidden_size: int = 512
    """Size of the embeddings and the hidden states, an even multiple of the number of heads."""
    heads: int = 8
    """Number of attention heads."""
    layers: int = 6
    """Number of layers of the encoder, and of the decoder."""
    feedforward_size: int = 2048
    """Hidden size of the feed-forward networks."""
    dropout: float = 0.1
    """Dropout probability of the embeddings, the attention weights, the feed-forward networks and what
    each of them adds to the hidden states."""
    attention_map: str = "entmax"
    """Map from scores to attention weights: "softmax" or "entmax"."""
    attention_alpha: float | str = "learned"
    """Alpha of "entmax": a number, or "learned" for one per head between 1 and 2."""
    alpha_start: float | str = "random"
    """Where a learned alpha starts: a number between 1 and 2, or "random" for 1 + sigmoid(a) with a
    from a standard normal distribution."""
    tie_alpha: bool = False
    """Whether the heads of a layer share one learned alpha per kind of attention."""
    norm: str = "pre"
    """Layer normalization before each part of a layer ("pre", which trains more stably) or after it
    ("post")."""
    max_positions: int = 1024
    """Length of the longest sequence, at most 65,536; positions are sinusoidal."""
    output_alpha: float = 1.0
    """Alpha of the loss and of the output probabilities; 1 is cross-entropy with softmax, 2 the sparsemax
    loss with sparsemax."""
    label_smoothing: float = 0.1
    """Share of the target that is spread over the vocabulary in training; validation losses are without
    it."""

    def __post_init__(self) -> None:
        for name in ("hidden_size", "heads", "layers", "feedforward_size", "max_positions"):
            check_count(getattr(self, name), name)
        if self.max_positions > LARGEST_MAX_POSITIONS:
            raise FenchelError(
                f"max_positions must be at most {LARGEST_MAX_POSITIONS}, got {self.max_positions}"
            )
        if self.hidden_size % self.heads:
            raise FenchelError(
                "hidden_size must be divisible by heads, got "
                f"{self.hidden_size} and {self.heads} heads"
            )
        if self.hidden_size % 2:
            raise FenchelError(f"hidden_size must be even, got {self.hidden_size}")
        for name in ("dropout", "label_smoothing"):
            value = check_number(getattr(self, name), name=name, above=BELOW_ZERO)
            if value >= 1:
                raise FenchelError(f"{name} must be at least 0 and below 1, got {value}")
        check_known("attention_map", self.attention_map, MAPS)
        check_known("norm", self.norm, NORMS)
        _check_alpha("attention_alpha", self.attention_alpha)
        check_start(self.alpha_start, "alpha_start")
        check_number(self.output_alpha, name="output_alpha", above=0)

    @property
    def alpha(self) -> float | str:
        """Alpha of the attention: 1 for softmax."""
        return 1.0 if self.attention_map == "softmax" else self.attention_alpha


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(LayersConfig):
    """Settings of a `Transformer`.

    >>> TransformerConfig(source_size=60, target_size=40, attention_map="softmax").hidden_size
    512
    """

    source_size: int = field(default=len(SPECIAL), metadata={"derived": True})
    """Size of the source vocabulary."""
    target_size: int = field(default=len(SPECIAL), metadata={"derived": True})
    """Size of the target vocabulary."""
    encoder_alpha: float | str | None = None
    """Alpha of the self-attention of the encoder, if it differs: a number, where 1 is softmax, or
    "learned"."""
    context_alpha: float | str | None = None
    """Alpha of the attention of the decoder to the encoder, if it differs."""
    decoder_alpha: float | str | None = None
    """Alpha of the self-attention of the decoder, if it differs."""
    share_embeddings: str = "target"
    """Which weights are shared: "none"; "target", those of the target embeddings and of the output layer;
    or "joint", those of the source embeddings as well, which requires a joint vocabulary."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.source_size, "source_size")
        check_count(self.target_size, "target_size")
        for name in ("encoder_alpha", "context_alpha", "decoder_alpha"):
            if getattr(self, name) is not None:
                _check_alpha(name, getattr(self, name))
        check_known("share_embeddings", self.share_embeddings, SHARED_EMBEDDINGS)
        if self.share_embeddings == "joint" and self.source_size != self.target_size:
            raise FenchelError(
                'share_embeddings="joint" requires equal source_size and target_size, got '
                f"{self.source_size} and {self.target_size}"
            )

    def alpha_of(self, kind: str) -> float | str:
        """Alpha of a kind of attention: "encoder", "context" or "decoder"."""
        own = getattr(self, f"{kind}_alpha")
        return self.alpha if own is None else own


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(LayersConfig):
    """Settings of a `LanguageModel`.

    >>> LanguageModelConfig(vocabulary_size=60, attention_alpha=1.5).layers
    6
    """

    vocabulary_size: int = field(default=len(SPECIAL), metadata={"derived": True})
    """Size of the vocabulary."""
    label_smoothing: float = 0.0
    """Share of the target that is spread over the vocabulary in training; validation losses are without
    it."""
    share_embeddings: bool = True
    """Whether the embeddings and the output layer share their weights."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.vocabulary_size, "vocabulary_size")


def _check_alpha(name: str, alpha: float | str) -> None:
    if alpha == "learned":
        return
    if isinstance(alpha, str):
        raise FenchelError(f'{name} must be a positive number or "learned", got {alpha!r}')
    check_number(alpha, name=name, above=0)
