"""Beam search in batches, compared with one sentence at a time.

The model has the size of the inflection recipe, and is trained for some seconds on the data of the
package: with random weights, the lengths of answers would be random too, or unlimited. Both ways must
find the same answers.
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
from fenchel.data import LengthBuckets
from fenchel.errors import FenchelError
from fenchel.models import Seq2Seq, Seq2SeqConfig
from fenchel.search import Answer, beam_search
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.encoded import SequencePairs
from fenchel.tasks.sequences.public_sets import shipped

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
        """The search; first checks that the answers of the sample are those of the batch."""
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


def search(model: Seq2Seq, data: SequencePairs, places: Sequence[int]) -> list[Answer]:
    """The answers for the sentences at these places, found together."""
    batch = data.batch(list(places))
    stepper = model.stepper(batch.source, batch.source_lengths)
    return beam_search(stepper, width=BEAM, max_length=LONGEST)


def check_usual(answers: Sequence[Answer]) -> None:
    """Raise unless the answers have the lengths of words: other lengths are not representative."""
    length = fmean(len(answer.best.tokens) for answer in answers)
    if not USUAL[0] <= length <= USUAL[1]:
        raise FenchelError(
            f"answers must have {USUAL[0]:g} to {USUAL[1]:g} symbols on average, got {length}"
        )


def check_same(batched: Sequence[Answer], alone: Sequence[Answer]) -> None:
    """Raise unless the sequences and what is proven of them are the same, in the same order."""
    for place, (one, other) in enumerate(zip(batched, alone, strict=True)):
        if _described(one) != _described(other):
            raise FenchelError(
                f"the answer to sentence {place} must not depend on its batch:"
                f" alone {_described(other)}, got {_described(one)}"
            )
        pairs = zip(one.hypotheses, other.hypotheses, strict=True)
        gap = max(abs(first.probability - second.probability) for first, second in pairs)
        if gap > CLOSE:
            raise FenchelError(
                f"probabilities of sentence {place} must not depend on its batch:"
                f" differences must be at most {CLOSE:g}, got {gap}"
            )


def _described(answer: Answer) -> tuple[object, ...]:
    found = [(hypothesis.tokens, hypothesis.finished) for hypothesis in answer.hypotheses]
    return found, answer.certified, answer.complete


@lru_cache
def _codec() -> Codec:
    return Codec.fit(shipped()["train"])


@lru_cache
def sentences(count: int) -> SequencePairs:
    """Examples that the model was not trained on; from the first again, if they are not enough."""
    held_out = [*shipped()["test"], *shipped()["dev"]]
    return SequencePairs.of([held_out[place % len(held_out)] for place in range(count)], _codec())


@lru_cache
def inflection_model(device: str, size: int, steps: int) -> Seq2Seq:
    """A 1.5-entmax model after `steps` steps of Adam, ready for search."""
    codec = _codec()
    data = SequencePairs.of(shipped()["train"], codec).to(device)
    torch.manual_seed(0)
    sizes = len(codec.source_vocabulary), len(codec.target_vocabulary)
    model = Seq2Seq(Seq2SeqConfig(*sizes, embedding_size=size, hidden_size=size)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    batches: list[Tensor] = []
    while len(batches) < steps:
        batches += LengthBuckets(data, BATCH, seed=len(batches)).batches()
    for index in batches[:steps]:
        loss = model.loss(data.batch(index), describe=False)["loss"]
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    return model.eval()


def _nothing(inputs: Inputs) -> Tensor:
    return inputs.target


SEARCHES: list[Operation] = [
    SearchOperation(ONE_BY_ONE, "search", ONE_BY_ONE, _nothing, learns=(), sample=SAMPLE),
    SearchOperation(BATCHED, "search", ONE_BY_ONE, _nothing, (ONE_BY_ONE,), learns=()),
]
