"""Answers for examples: batches of similar length, returned in the order of the input."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from fenchel.data.batches import LengthBuckets
from fenchel.data.codec import Codec
from fenchel.data.encoded import Encoded
from fenchel.data.example import Example
from fenchel.data.vocabulary import BOS, EOS
from fenchel.errors import rule
from fenchel.models.seq2seq import Seq2Seq
from fenchel.search import Answer, Ensemble, beam_search
from fenchel.search.stepper import Stepper
from fenchel.training.run import Run
from fenchel.training.sizes import searched_at_once

Models = Run | Seq2Seq | Sequence[Seq2Seq]


def predict(
    model: Models,
    codec: Codec | None,
    examples: Sequence[Example],
    *,
    width: int = 5,
    batch_size: int | None = None,
    max_length: int = 100,
    device: torch.device | str | None = None,
    progress: Callable[[int], object] | None = None,
    search: Callable[..., list[Answer]] = beam_search,
) -> list[Answer]:
    """The answers of beam search, one an example.

    Args:
        model: a model, the model of a run, or several models whose probabilities are averaged.
        codec: text to numbers; None takes the run's.
        examples: their targets are not looked at.
        width: of the beam.
        batch_size: sentences searched together; as many as suit the device, unless given.
        max_length: tokens of an answer, at most.
        device: where to search; where the model is, unless given.
        progress: called after every batch with the number of its examples.
        search: any function of `fenchel.search` that is called as `beam_search` is.
    """
    models, codec = _models(model, codec)
    if not examples:
        return []
    device = next(models[0].parameters()).device if device is None else torch.device(device)
    for each in models:
        each.to(device).eval()
    bare = [Example(e.source, None, e.tags, e.group) for e in examples]
    data = Encoded.of(bare, codec).to(device)
    answers: list[Answer | None] = [None] * len(examples)
    if batch_size is None:
        batch_size = searched_at_once(device, models[0].config.target_size, width)
    for index in LengthBuckets(data, batch_size, shuffle=False).batches():
        batch = data.batch(index)
        steppers: list[Stepper] = [m.stepper(batch.source, batch.source_lengths) for m in models]
        stepper = steppers[0] if len(steppers) == 1 else Ensemble(steppers)
        found = search(stepper, width=width, max_length=max_length, bos=BOS, eos=EOS)
        for place, answer in zip(index.tolist(), found, strict=True):
            answers[place] = answer
        if progress is not None:
            progress(len(found))
    return [answer for answer in answers if answer is not None]


def _models(model: Models, codec: Codec | None) -> tuple[list[Seq2Seq], Codec]:
    if isinstance(model, Run):
        model, codec = model.model, codec or model.codec
    models = [model] if isinstance(model, Seq2Seq) else list(model)
    if codec is None or not models:
        raise rule("a model is used with its codec", expected="both", got="one of them")
    sizes = len(codec.source_vocabulary), len(codec.target_vocabulary)
    for each in models:
        if (each.config.source_size, each.config.target_size) != sizes:
            expected = f"vocabularies of {each.config.source_size} and {each.config.target_size}"
            got = f"{sizes[0]} and {sizes[1]}"
            raise rule("a model is used with its codec", expected=expected, got=got)
    return models, codec
