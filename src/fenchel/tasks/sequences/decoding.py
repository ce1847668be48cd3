"""Decoding: batches of sentences of similar length are searched together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from fenchel.data.batches import LengthBuckets
from fenchel.data.vocabulary import BOS, EOS
from fenchel.errors import FenchelError
from fenchel.search import Answer, Ensemble, beam_search
from fenchel.search.stepper import Stepper
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.encoded import SequencePairs, check_lengths
from fenchel.tasks.sequences.example import Example

# Sentences per batch that keep a CPU or a GPU busy.
CPU_SENTENCES, GPU_SENTENCES = 256, 2048
GPU_SYMBOLS = 2**16  # per batch with known targets: a few GB of states in the largest recipe
GPU_SCORES = 2**27  # per batch: 512 MB


class SequenceModel(Protocol):
    """What tasks need of a model of sequences; its configuration has the sizes of both vocabularies."""

    config: Any

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights."""
        ...

    def stepper(self, source: Tensor, source_lengths: Tensor) -> Stepper:
        """Sources (B, S), padded, for a search."""
        ...

    def attend(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Any:
        """Attention to the source and probabilities while the target (B, T) is given."""
        ...

    def alphas(self) -> Mapping[str, Tensor]:
        """The learned α of every layer with one: a number, or one value per head."""
        ...


def decode(
    models: Any,
    codec: Codec,
    examples: Sequence[Example],
    *,
    width: int = 5,
    batch_size: int | None = None,
    max_length: int = 100,
    device: torch.device | str | None = None,
    progress: Callable[[int], object] | None = None,
    search: Callable[..., list[Answer]] = beam_search,
) -> list[Answer]:
    """The answer of a search for every example, in the order of the examples.

    Args:
        models: A `SequenceModel`, or several whose probabilities are averaged.
        codec: The vocabularies and segmentations of the models.
        examples: Their targets are ignored.
        width: Number of hypotheses kept.
        batch_size: Number of sentences searched together; None chooses it by the device.
        max_length: Maximum number of tokens of an answer.
        device: Where to search; None searches where the model is.
        progress: Called after every batch with the number of its examples.
        search: A function of `fenchel.search` with the signature of `beam_search`.
    """
    chosen: list[Any] = [models] if isinstance(models, nn.Module) else list(models)
    _check_vocabularies(chosen, codec)
    if not examples:
        return []
    where = next(chosen[0].parameters()).device if device is None else torch.device(device)
    for model in chosen:
        model.to(where).eval()
    sources = [Example(e.source, None, e.tags, e.group) for e in examples]
    data = SequencePairs.of(sources, codec).to(where)
    for model in chosen:
        check_lengths(data, sources, model.config)
    answers: list[Answer | None] = [None] * len(examples)
    if batch_size is None:
        batch_size = search_batch(where.type, chosen[0].config.target_size, width)
    for index in LengthBuckets(data, batch_size, shuffle=False).batches():
        batch = data.batch(index)
        steppers: list[Stepper] = [m.stepper(batch.source, batch.source_lengths) for m in chosen]
        stepper = steppers[0] if len(steppers) == 1 else Ensemble(steppers)
        found = search(stepper, width=width, max_length=max_length, bos=BOS, eos=EOS)
        for place, answer in zip(index.tolist(), found, strict=True):
            answers[place] = answer
        if progress is not None:
            progress(len(found))
    return [answer for answer in answers if answer is not None]


def validation_batch(device_type: str, vocabulary_size: int) -> tuple[int, int | None]:
    """Maximum numbers of sentences and of symbols per batch with known targets.

    All scores of a batch exist at once.

    >>> validation_batch("cuda", 8000)
    (2048, 16777)
    """
    if device_type == "cpu":
        return CPU_SENTENCES, None
    return GPU_SENTENCES, max(min(GPU_SYMBOLS, GPU_SCORES // vocabulary_size), 1)


def search_batch(device_type: str, vocabulary_size: int, width: int) -> int:
    """Maximum number of sentences per batch of a search, which scores one symbol per hypothesis.

    >>> search_batch("cuda", 32000, width=5)
    838
    """
    if device_type == "cpu":
        return CPU_SENTENCES
    return max(min(GPU_SENTENCES, GPU_SCORES // (vocabulary_size * width)), 1)


def _check_vocabularies(models: Sequence[SequenceModel], codec: Codec) -> None:
    if not models:
        raise FenchelError("models must not be empty")
    expected = len(codec.source_vocabulary), len(codec.target_vocabulary)
    for model in models:
        found = model.config.source_size, model.config.target_size
        if found != expected:
            raise FenchelError(
                f"model and codec must have equal vocabulary sizes, got {found} and {expected}"
            )
