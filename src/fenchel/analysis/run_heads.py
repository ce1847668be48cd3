"""The attention heads of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Any

from torch import Tensor

from fenchel.analysis.head_analysis import heads
from fenchel.analysis.head_table import HeadTable
from fenchel.data.batches import LengthBuckets
from fenchel.data.segmentation import MARK, UNKNOWN
from fenchel.data.sentences import Sentences, Tokens
from fenchel.data.vocabulary import SPECIAL
from fenchel.errors import FenchelError
from fenchel.training import Run
from fenchel.training.device import best_device


def heads_of_run(
    run: Run,
    examples: Sequence[Any],
    *,
    interrogatives: str | Collection[str] = "en",
    threshold: float = 0.8,
    kept: int | Collection[int] = 0,
    progress: Callable[[int], object] | None = None,
) -> HeadTable:
    """`fenchel.analysis.heads` of the model of a run.

    A task without attention heads is an error, as are examples of which the model does not know half of
    the tokens.

    Args:
        run: The run.
        examples: Examples with targets.
        interrogatives: The interrogative words, or their language.
        threshold: The confidence from which on a head has a role.
        kept: Examples of which the attention of all heads is kept: their numbers, or how many of the
            first ones.
        progress: Called with the number of examples done.
    """
    if not run.task.has_heads:
        raise FenchelError(f"the task {run.task.kind} has no attention heads to analyze")
    if not examples:
        raise FenchelError("examples must not be empty")
    counts = Counter()
    table = heads(
        run.model.to(best_device()),
        _sentences(run, examples, counts),
        forward=lambda model, batch: model.loss(batch, describe=False),
        interrogatives=interrogatives,
        threshold=threshold,
        examples=kept,
        progress=progress,
    )
    if counts["unknown"] > counts["known"]:
        share = counts["known"] / counts.total()
        raise FenchelError(
            f"at least half of the tokens must be known to the model of {run.path}, got {share:.0%}"
        )
    return table


def _sentences(run: Run, examples: Sequence[Any], counts: Counter[str]) -> Iterator[Sentences]:
    """The examples in batches of similar length, with their tokens and their numbers.

    `counts` is given the numbers of tokens that are "known" to the model and "unknown".
    """
    data, device = run.processor.encode(examples), best_device()
    run.task.check_data(data, examples)
    data = data.to(device)
    size, symbols = run.task.validation_batch(device.type)
    places = LengthBuckets(data, size, batch_tokens=symbols, shuffle=False).batches()

    def sentences(index: Tensor) -> Sentences:
        batch = data.batch(index)
        tokens: dict[str, Tokens] = run.task.attended_tokens(run.processor, batch)
        for side in tokens.values():
            strings = list(chain.from_iterable(side.strings or []))
            counts["unknown"] += strings.count(UNKNOWN)
            counts["known"] += sum(string not in (*SPECIAL, MARK) for string in strings)
        return Sentences(batch, **tokens, numbers=index.tolist())

    return map(sentences, places)
