"""Ways of the decoder to run all steps of a target, measured as whole training steps of three models.

The models have the sizes of the demo and of the recipes inflection and translation. A step is the
loss and all gradients; on a GPU it is replayed as a CUDA graph, as in training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.inputs import Inputs
from benchmarks.registry import Operation
from fenchel.models import Seq2Seq, Seq2SeqConfig
from fenchel.training.graphs import CudaRecorder

# By the symbols of a target: the vocabulary, the hidden size and further settings.
MODELS: dict[int, tuple[int, int, dict[str, Any]]] = {
    10: (60, 128, {"layers": 1, "dropout": 0.2, "attention": "dot"}),
    12: (60, 300, {}),
    25: (8000, 500, {}),
}
COMBINED = {"attention_map": "combined", "attention_alpha": 1.0, "continuous_alpha": 2.0}
FEEDING, CONTINUOUS, APART = "input feeding", "combined attention", "no input feeding"
BASELINE = f"autograd, {FEEDING}"


class Sentences(NamedTuple):
    source: Tensor
    source_lengths: Tensor
    target: Tensor


@dataclass(frozen=True)
class DecoderOperation(Operation):
    """A training step of a model; with `autograd`, autograd records every step of its decoder."""

    settings: tuple[tuple[str, Any], ...] = ()
    autograd: bool = False

    @property
    def optional(self) -> bool:
        return False

    def build(self, inputs: Inputs, *, backward: bool) -> Callable[[], object]:
        """The loss with its gradients, whatever `backward` says."""
        rows, length = inputs.upstream.shape
        vocabulary, size, others = MODELS[length]
        torch.manual_seed(0)
        sizes = {"embedding_size": size, "hidden_size": size}
        config = Seq2SeqConfig(vocabulary, vocabulary, **sizes, **{**others, **dict(self.settings)})
        model = Seq2Seq(config).to(inputs.target.device, inputs.upstream.dtype).train()
        if self.autograd:
            model.decoder.forward = model.decoder._step_by_step
        batch = sentences(rows, length, vocabulary, inputs.target.device)
        parameters = tuple(model.parameters())

        def step() -> Any:
            loss = model.loss(batch, describe=False)["loss"].total
            return torch.autograd.grad(loss, parameters)

        return _recorded(step) if inputs.target.is_cuda else step


def sentences(rows: int, length: int, vocabulary: int, device: torch.device) -> Sentences:
    """Random symbols, from 70 % of the length on; the first source and target are the longest."""
    draw = torch.Generator().manual_seed(0)

    def symbols() -> tuple[Tensor, Tensor]:
        lengths = torch.randint(7 * length // 10, length + 1, (rows,), generator=draw)
        lengths[0] = length
        found = torch.randint(4, vocabulary, (rows, length), generator=draw)
        return found.where(torch.arange(length) < lengths.unsqueeze(1), 0).to(device), lengths

    source, lengths = symbols()
    return Sentences(source, lengths, symbols()[0])


def _recorded(step: Callable[[], Any]) -> Callable[[], object]:
    """The step as a CUDA graph, which needs the memory of its model and batch to stay allocated."""
    replay = CudaRecorder()(step)

    def replayed(kept: object = step) -> None:
        replay()

    return replayed


def _nothing(inputs: Inputs) -> Tensor:
    return inputs.target


def _pair(fast: str, what: str, **settings: Any) -> list[Operation]:
    slow, given = f"autograd, {what}", tuple(settings.items())
    return [
        DecoderOperation(slow, "decoder", BASELINE, _nothing, settings=given, autograd=True),
        DecoderOperation(f"{fast}, {what}", "decoder", BASELINE, _nothing, (slow,), settings=given),
    ]


DECODERS: list[Operation] = [
    *_pair("own backward pass", FEEDING),
    *_pair("own backward pass", CONTINUOUS, **COMBINED),
    *_pair("all steps at once", APART, input_feeding=False),
]
