"""`torch.nn.Transformer` as a translation model, to compare training speeds with."""

from __future__ import annotations

import warnings
from typing import Any, final

from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.data.vocabulary import PAD
from fenchel.models.means import Mean, Means
from fenchel.models.next_token import tokens_before
from fenchel.models.transformer import TransformerConfig
from fenchel.models.transformer.embedding import PositionalEmbedding


@final
class TorchTransformer(nn.Module):
    """PyTorch's model of the same size between the same embeddings, with `F.cross_entropy`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        sizes = config.hidden_size, config.max_positions, config.dropout
        self.source_embedding = PositionalEmbedding(config.source_size, *sizes)
        self.target_embedding = PositionalEmbedding(config.target_size, *sizes)
        with warnings.catch_warnings():  # about inference
            warnings.filterwarnings("ignore", message="enable_nested_tensor is True")
            self.transformer = nn.Transformer(
                config.hidden_size,
                config.heads,
                config.layers,
                config.layers,
                config.feedforward_size,
                config.dropout,
                batch_first=True,
                norm_first=config.norm == "pre",
            )
        self.output = nn.Linear(config.hidden_size, config.target_size)
        if config.share_embeddings != "none":
            self.output.weight = self.target_embedding.tokens.weight
        if config.share_embeddings == "joint":
            self.source_embedding.tokens.weight = self.target_embedding.tokens.weight

    def loss(self, batch: Any, *, describe: bool = True) -> Means:
        """The cross-entropy with label smoothing, in total."""
        padding, target = batch.source == PAD, tokens_before(batch.target)
        causal = nn.Transformer.generate_square_subsequent_mask(
            target.shape[1], device=target.device, dtype=self.output.weight.dtype
        )
        hidden: Tensor = self.transformer(
            self.source_embedding(batch.source),
            self.target_embedding(target),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        total = F.cross_entropy(
            self.output(hidden).flatten(0, 1),
            batch.target.flatten(),
            ignore_index=PAD,
            reduction="sum",
            label_smoothing=self.config.label_smoothing,
        )
        return {"loss": Mean(total, (batch.target != PAD).sum())}
