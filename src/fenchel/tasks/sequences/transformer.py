"""The task of Transformers from a sequence to a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from fenchel.data.sentences import Tokens, tokens_of_ids
from fenchel.data.vocabulary import PAD
from fenchel.errors import FenchelError
from fenchel.models.next_token import tokens_before
from fenchel.models.transformer import Transformer, TransformerConfig
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.encoded import Batch
from fenchel.tasks.sequences.task import SequenceTask

CPU_SYMBOLS = 2**14  # per batch with known targets: attention takes memory for pairs of symbols


@final
@dataclass(frozen=True, kw_only=True)
class TransformerTask(SequenceTask):
    """A source sequence to a target sequence with a Transformer."""

    kind = "transformer"

    model: TransformerConfig = field(default_factory=TransformerConfig)

    def __post_init__(self) -> None:
        if self.model.share_embeddings == "joint" and not self.data.joint:
            raise FenchelError('share_embeddings="joint" requires data.joint=true')
        longest, wanted = self.model.max_positions, self.search.max_length
        if wanted >= longest:
            raise FenchelError(
                f"search.max_length must be below max_positions = {longest}, got {wanted}"
            )

    @property
    def model_sizes(self) -> Mapping[str, int]:
        names = ("source_size", "target_size", "hidden_size", "feedforward_size", "layers")
        return {name: getattr(self.model, name) for name in names}

    def build_model(self) -> Transformer:
        return Transformer(self.model)

    def attended_tokens(self, processor: Codec, batch: Batch) -> dict[str, Tokens]:
        source, target = batch.source, batch.target
        return {
            "source": tokens_of_ids(
                source,
                (source != PAD).sum(1),
                processor.source_vocabulary,
                processor.source_segmentation,
            ),
            "target": tokens_of_ids(
                tokens_before(target),
                (target != PAD).sum(1),
                processor.target_vocabulary,
                processor.target_segmentation,
            ),
        }

    def validation_batch(self, device_type: str) -> tuple[int, int | None]:
        sentences, symbols = super().validation_batch(device_type)
        return sentences, CPU_SYMBOLS if symbols is None else symbols
