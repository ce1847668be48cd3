"""Beam search: all sentences of a batch at once, against one after the other.

The model has the size of the inflection recipe and was trained for some seconds on the shipped
languages: random weights would answer at random lengths, or never end. Both ways must find the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

import torch
from torch import Tensor

from benchmarks.inputs import Inputs
from benchmarks.problems import BEAM
from benchmarks.registry import Operation
from fenchel.data import Codec, Encoded, LengthBuckets, shipped
from fenchel.errors import rule
from fenchel.models import Seq2Seq, Seq2SeqConfig
from fenchel.search import Answer, beam_search

SIZE, STEPS, BATCH, RATE = 300, 250, 64, 3e-3
LONGEST = 60
SAMPLE = 32  # sentences that are searched one by one; the others are taken to cost as much
USUAL = 5.0, 20.0  # symbols of an answer, on average
CLOSE = 1e-5  # by how much probabilities may differ: products of other sizes round otherwise
BATCHED = "beam search, all at once"
ONE_BY_ONE = f"beam search, one by one ({SAMPLE} sentences)"


@dataclass(frozen=True)
class SearchOperation(Operation):
    """Searches as many sentences as there are rows, or the first `sample` of them."""

    sample: int | None = None

    @property
    def optional(self) -> bool:
        return False

    def repeats(self, rows: int) -> float:
        return 1.0 if self.sample is None else rows / min(rows, self.sample)

    def build(self, inputs: Inputs, *, backward: bool) -> Callable[[], object]:
        """The search, after a look at its answers: the sample's must be those of the batch."""
        rows, device = inputs.target.shape[0], inputs.target.device
        data = sentences(rows).to(device)
        model = inflection_model(device.type, SIZE, STEPS)
        if self.sample is None:
            return lambda: search(model, data, range(rows))
        places = range(min(rows, self.sample))
        alone = [search(model, data, [place])[0] for place in places]
        check_usual(alone)
        check_same(search(model, data, range(rows))[: len(alone)], alone)
        return lambda: [search(model, data, [place]) for place in places]


def search(model: Seq2Seq, data: Encoded, places: Sequence[int]) -> list[Answer]:
    """The answers for the sentences at these places, found together."""
    batch = data.batch(list(places))
    stepper = model.stepper(batch.source, batch.source_lengths)
    return beam_search(stepper, width=BEAM, max_length=LONGEST)


def check_usual(answers: Sequence[Answer]) -> None:
    """Raise unless the answers are as long as words are: a search of other lengths says little."""
    length = fmean(len(answer.best.tokens) for answer in answers)
    if not USUAL[0] <= length <= USUAL[1]:
        expected = f"{USUAL[0]:g} to {USUAL[1]:g} symbols on average"
        raise rule("answers are as long as words", expected=expected, got=length)


def check_same(batched: Sequence[Answer], alone: Sequence[Answer]) -> None:
    """Raise unless the sequences and what is proven of them are the same, in the same order."""
    for place, (one, other) in enumerate(zip(batched, alone, strict=True)):
        if _described(one) != _described(other):
            expected, got = _described(other), f"{_described(one)} for sentence {place}"
            raise rule("a batch is searched as its sentences are", expected=expected, got=got)
        pairs = zip(one.hypotheses, other.hypotheses, strict=True)
        gap = max(abs(first.probability - second.probability) for first, second in pairs)
        if gap > CLOSE:
            expected = f"probabilities within {CLOSE:g}"
            raise rule("a batch is searched as its sentences are", expected=expected, got=gap)


def _described(answer: Answer) -> tuple[object, ...]:
    found = [(hypothesis.tokens, hypothesis.finished) for hypothesis in answer.hypotheses]
    return found, answer.certified, answer.complete


@lru_cache
def _codec() -> Codec:
    return Codec.fit(shipped()["train"])


@lru_cache
def sentences(count: int) -> Encoded:
    """Examples that the model was not trained on; from the first again, if they are not enough."""
    held_out = [*shipped()["test"], *shipped()["dev"]]
    return Encoded.of([held_out[place % len(held_out)] for place in range(count)], _codec())


@lru_cache
def inflection_model(device: str, size: int, steps: int) -> Seq2Seq:
    """A 1.5-entmax model after so many steps of Adam, ready for search."""
    codec = _codec()
    data = Encoded.of(shipped()["train"], codec).to(device)
    torch.manual_seed(0)
    sizes = len(codec.source_vocabulary), len(codec.target_vocabulary)
    model = Seq2Seq(Seq2SeqConfig(*sizes, embedding_size=size, hidden_size=size)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    batches: list[Tensor] = []
    while len(batches) < steps:
        batches += LengthBuckets(data, BATCH, seed=len(batches)).batches()
    for index in batches[:steps]:
        total, statistics = model.loss(data.batch(index), describe=False)
        optimizer.zero_grad()
        (total / statistics.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    return model.eval()


def _nothing(inputs: Inputs) -> Tensor:
    return inputs.target


SEARCHES: list[Operation] = [
    SearchOperation(ONE_BY_ONE, "search", ONE_BY_ONE, _nothing, learns=(), sample=SAMPLE),
    SearchOperation(BATCHED, "search", ONE_BY_ONE, _nothing, (ONE_BY_ONE,), learns=()),
]
