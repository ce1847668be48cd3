"""The batches that an analysis takes, and how a model is called on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from fenchel.data.sentences import Sentences, Tokens
from fenchel.errors import FenchelError


def sentences_of(batches: Iterable[Any]) -> Iterator[Sentences]:
    """The batches as `Sentences`; those of a fast tokenizer of transformers bring their tokens."""
    if isinstance(batches, Tensor | Mapping | Sentences | str) or not isinstance(batches, Iterable):
        got = type(batches).__name__
        raise FenchelError(f"batches must be an iterable of batches such as [batch], got {got}")
    for batch in batches:
        if isinstance(batch, Sentences):
            yield batch
        elif getattr(batch, "encodings", None):
            yield Sentences(batch, source=_tokens(batch.encodings))
        else:
            yield Sentences(batch)


def call(model: nn.Module, inputs: Any) -> Any:
    """Call a model with a mapping of named arguments, a sequence of arguments, or a single one."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, tuple | list):
        return model(*inputs)
    return model(inputs)


def _tokens(encodings: Iterable[Any]) -> Tokens:
    """The tokens of encodings of the library tokenizers, without padding."""
    strings: list[list[str]] = []
    words: list[list[int | None]] = []
    for encoding in encodings:
        kept = [place for place, shown in enumerate(encoding.attention_mask) if shown]
        strings.append([encoding.tokens[place] for place in kept])
        numbers: dict[tuple[int, int], int] = {}
        pairs = list(zip(encoding.sequence_ids, encoding.word_ids, strict=True))
        words.append(
            [
                None if pairs[place][1] is None else numbers.setdefault(pairs[place], len(numbers))
                for place in kept
            ]
        )
    return Tokens(strings, words)
