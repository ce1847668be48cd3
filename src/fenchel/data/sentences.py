"""The tokens of the sentences in a batch, for an analysis of attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

from fenchel.data.segmentation import MARK, Segmentation, Subwords
from fenchel.data.vocabulary import SPECIAL, Vocabulary
from fenchel.errors import FenchelError

HYPHENS = {"-", "‐", "‑", "@-@"}  # the last one is that of the Moses tokenizer


@final
@dataclass(frozen=True)
class Tokens:
    """The tokens of a batch, as the model sees them: with special tokens, without padding.

    One of the arguments is enough. Each has one entry per sentence.

    Args:
        strings: The tokens.
        words: For each token the number of its word, None for special tokens. Tokens with the same
            number are a word that was split. This is what `BatchEncoding.word_ids` of transformers
            returns.
        lengths: The numbers of tokens.

    >>> Tokens([["a", "b"], ["c"]]).lengths
    [2, 1]
    """

    strings: Sequence[Sequence[str]] | None = None
    words: Sequence[Sequence[int | None]] | None = None
    lengths: Sequence[int] | None = None

    def __post_init__(self) -> None:
        parts = {"strings": self.strings, "words": self.words}
        found = {name: list(map(len, part)) for name, part in parts.items() if part is not None}
        if self.lengths is not None:
            found["lengths"] = list(self.lengths)
        if not found:
            raise FenchelError("tokens must have strings, words or lengths, got none of them")
        first, *others = found
        for other in others:
            if found[other] != found[first]:
                raise FenchelError(
                    f"{first} and {other} of tokens must agree on the lengths of the sentences, "
                    f"got {found[first]} and {found[other]}"
                )
        object.__setattr__(self, "lengths", found[first])

    def __len__(self) -> int:
        assert self.lengths is not None
        return len(self.lengths)


@final
@dataclass(frozen=True)
class Sentences:
    """A batch of a model with the tokens of its sentences.

    Args:
        inputs: What the model is called with.
        source: The tokens of the encoder, or of a model that has only one sequence; strings are enough.
        target: The tokens of the decoder of an encoder–decoder.
        numbers: The numbers of the sentences in the data; by default they are counted from 0 on.

    >>> Sentences("inputs", source=[["a", "b"], ["c"]]).source.lengths
    [2, 1]
    """

    inputs: Any
    source: Tokens | Sequence[Sequence[str]] | None = None
    target: Tokens | Sequence[Sequence[str]] | None = None
    numbers: Sequence[int] | None = None

    def __post_init__(self) -> None:
        for name in ("source", "target"):
            tokens = getattr(self, name)
            if tokens is not None and not isinstance(tokens, Tokens):
                object.__setattr__(self, name, Tokens(tokens))
        counts = {
            name: len(part)
            for name in ("source", "target", "numbers")
            if (part := getattr(self, name)) is not None
        }
        if len(set(counts.values())) > 1:
            got = ", ".join(f"{count} in {name}" for name, count in counts.items())
            raise FenchelError(f"all parts of a batch must have the same sentences, got {got}")

    @property
    def count(self) -> int | None:
        """The number of sentences, if it is known."""
        parts = (self.source, self.target, self.numbers)
        return next((len(part) for part in parts if part is not None), None)


def tokens_of_ids(
    ids: Tensor, lengths: Tensor, vocabulary: Vocabulary, segmentation: Segmentation
) -> Tokens:
    """The tokens with these ids (B, L), of which each row has the first `lengths` (B,).

    Words are known if they were split into subwords.
    """
    rows = zip(ids.tolist(), lengths.tolist(), strict=True)
    strings = [vocabulary.symbols(row[:length]) for row, length in rows]
    split = isinstance(segmentation, Subwords)
    return Tokens(strings, [word_numbers(row) for row in strings] if split else None)


def word_numbers(tokens: Sequence[str]) -> list[int | None]:
    """The word of each of the subwords of `fenchel.data.Subwords`; None for special tokens.

    The parts of a hyphenated word are one word. Other punctuation marks are words by themselves.

    >>> word_numbers(["▁low", "est", ",", "▁well", "-", "known", ".", "</s>"])
    [0, 0, 1, 2, 2, 2, 3, None]
    """
    numbers: list[int | None] = []
    word, before = -1, ""  # the token before
    for token in tokens:
        if token in SPECIAL:
            numbers.append(None)
        else:
            joins = before == MARK or (_is_of_word(before) and _is_of_word(token))
            if token.startswith(MARK) or not joins:
                word += 1
            numbers.append(word)
        before = token
    return numbers


def _is_of_word(token: str) -> bool:
    """Whether a token is a part of a word, not another punctuation mark or a special token."""
    text = token.removeprefix(MARK)
    return token not in SPECIAL and (text in HYPHENS or any(map(str.isalnum, text)))
