"""The task of recurrent sequence-to-sequence models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig
from fenchel.tasks.sequences.task import SequenceTask


@final
@dataclass(frozen=True, kw_only=True)
class Seq2SeqTask(SequenceTask):
    """A source sequence to a target sequence with an LSTM encoder–decoder."""

    kind = "sequences"
    recordable_fields = ("source", "target")

    model: Seq2SeqConfig = field(default_factory=Seq2SeqConfig)

    @property
    def model_sizes(self) -> Mapping[str, int]:
        names = ["source_size", "target_size", "embedding_size", "hidden_size", "layers"]
        if self.model.attention_map == "combined":
            names.append("attention_bases")
        return {name: getattr(self.model, name) for name in names}

    def build_model(self) -> Seq2Seq:
        return Seq2Seq(self.model)
