"""The heads of a model, measured on any number of batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import nn

from fenchel.analysis.attention import Attention, Kind
from fenchel.analysis.batches import call, sentences_of
from fenchel.analysis.capturing import capture
from fenchel.analysis.examples import ExampleSentences
from fenchel.analysis.head_table import HeadTable
from fenchel.analysis.placement import PlacedBatch
from fenchel.analysis.questions import interrogative_words
from fenchel.analysis.statistics import LayerStatistics
from fenchel.checks import check_count, check_number
from fenchel.data.sentences import Sentences
from fenchel.errors import FenchelError


def heads(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    forward: Callable[[Any, Any], object] | None = None,
    interrogatives: str | Collection[str] = "en",
    threshold: float = 0.8,
    examples: int | Collection[int] = 0,
    unsure: int = 3,
    progress: Callable[[int], object] | None = None,
) -> HeadTable:
    """Measure the attention heads of a model: α, density, diversity, and the roles that they take.

    The batches are used one by one, and only sums are kept, so that the memory needed does not depend on
    how many there are. The model runs in evaluation mode without gradients, on the device of the batches.
    `capture` says which models can be analysed.

    Args:
        model: The model.
        batches: What the model is called with: a tensor, a tuple of arguments, or a mapping of named
            ones. A batch of a fast tokenizer of transformers brings its tokens. Other tokens are given
            with `Sentences(inputs, source=tokens)`; without them, heads that merge subwords or find
            questions cannot be told.
        forward: Calls the model on the inputs of a batch: `forward(model, inputs)`.
        interrogatives: The interrogative words, or their language ("de", "en", "fr", "ja").
        threshold: The confidence from which on a head has a role.
        examples: Sentences of which the attention of all heads is kept: their numbers, or how many of
            the first ones.
        unsure: Number of sentences kept per head, those of which it is least sure.
        progress: Called after each batch with the number of its sentences.

    >>> import torch, fenchel
    >>> attention = fenchel.nn.MultiheadAttention(8, 2, batch_first=True, alpha=1.5)
    >>> batches = (torch.randn(4, 6, 8) for _ in range(3))
    >>> table = heads(attention, batches, forward=lambda model, x: model(x, x, x))
    >>> table.sentences, [(head["kind"], head["head"], head["alpha"]) for head in table.records()]
    (12, [('self', 0, 1.5), ('self', 1, 1.5)])
    """
    check_number(threshold, name="threshold", above=0)
    check_count(unsure, "unsure", least=0)
    if isinstance(examples, int):
        check_count(examples, "examples", least=0)
    collector = _Collector(interrogative_words(interrogatives), examples, unsure)
    with capture(model, collector.receive), _evaluating(model), torch.no_grad():
        for sentences in sentences_of(batches):
            collector.begin(sentences)
            (forward or call)(model, sentences.inputs)
            count = collector.end()
            if progress is not None:
                progress(count)
    if not collector.sentences:
        if collector.batches:
            raise FenchelError(f"forward must use the attention of {type(model).__name__}")
        raise FenchelError("batches must have at least one sentence, got none")
    return HeadTable(
        model=type(model).__name__,
        sentences=collector.sentences,
        threshold=threshold,
        statistics=collector.statistics(),
        examples=collector.examples.sentences(),
    )


@final
class _Collector:
    """Sums up what is captured, batch by batch."""

    def __init__(
        self, interrogatives: frozenset[str], examples: int | Collection[int], unsure: int
    ) -> None:
        self.sentences = self.batches = 0
        self.examples = ExampleSentences(examples)
        self._interrogatives, self._unsure = interrogatives, unsure
        self._layers: dict[tuple[str, Kind], LayerStatistics] = {}
        self._current = Sentences(None)
        self._batch: PlacedBatch | None = None

    def begin(self, sentences: Sentences) -> None:
        """Start a batch."""
        self._current, self._batch = sentences, None
        self.batches += 1

    def receive(self, attention: Attention) -> None:
        """Add the weights of one call of a layer."""
        if self._batch is None:
            numbers = self._numbers(len(attention.weights))
            self._batch = PlacedBatch(self._current, numbers, self._interrogatives)
        key = attention.name, attention.kind
        if key not in self._layers:
            self._layers[key] = LayerStatistics(attention, self._unsure)
        observed = self._layers[key].add(attention, self._batch)
        self.examples.add(attention, observed, self._batch)

    def end(self) -> int:
        """End a batch and return the number of its sentences."""
        count = 0 if self._batch is None else len(self._batch.numbers)
        self.sentences += count
        return count

    def statistics(self) -> list[LayerStatistics]:
        """The statistics of all layers that were called."""
        return list(self._layers.values())

    def _numbers(self, rows: int) -> Sequence[int]:
        if self._current.numbers is not None:
            return self._current.numbers
        count = rows if self._current.count is None else self._current.count
        return range(self.sentences, self.sentences + count)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
