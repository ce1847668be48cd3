"""The tokens of a batch, placed where the model sees them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, final

import torch
from torch import Tensor

from fenchel.analysis.attention import Attention
from fenchel.analysis.questions import QUESTION_MARKS, word_of
from fenchel.data.sentences import Sentences, Tokens
from fenchel.errors import FenchelError
from fenchel.mechanisms.masks import within


class Placed(NamedTuple):
    """What is known about the positions of one side of a batch.

    Attributes:
        valid: (B, L), True where there is a token.
        words: (B, L), the number of the word of each token, −1 for none; None if words are not known.
        word_count: The number of words in the longest sentence.
        questions: (B, L), True at question marks; None if the strings are not known.
        interrogatives: (B, L), True at interrogative words.
    """

    valid: Tensor
    words: Tensor | None = None
    word_count: int = 0
    questions: Tensor | None = None
    interrogatives: Tensor | None = None


class Observed(NamedTuple):
    """One call of an attention layer, restricted to the tokens of its sentences.

    Attributes:
        weights: (B, heads, L, S), zero where nothing is visible.
        visible: (B, 1 or heads, L, S), False for padding and for the queries that are padding.
        queries: (B, L), True where there is a query.
        keys: (B, S), True where there is a key.
    """

    weights: Tensor
    visible: Tensor
    queries: Tensor
    keys: Tensor


@final
class PlacedBatch:
    """The tokens of a batch, placed once for all layers that see them.

    Args:
        sentences: The batch.
        numbers: The numbers of its sentences in the data.
        interrogatives: The interrogative words.
    """

    def __init__(
        self, sentences: Sentences, numbers: Sequence[int], interrogatives: frozenset[str]
    ) -> None:
        self.sentences, self.numbers = sentences, numbers
        self._interrogatives = interrogatives
        self._placed: dict[tuple[str, torch.device], Placed] = {}

    def sides(self, kind: str) -> tuple[Tokens | None, Tokens | None]:
        """The tokens that are the queries and the keys of a kind of attention."""
        queries, keys = self._names(kind)
        return getattr(self.sentences, queries), getattr(self.sentences, keys)

    def queries(self, attention: Attention) -> Placed:
        """The queries of an attention."""
        name, _ = self._names(attention.kind)
        return self._place(name, attention.queries, attention)

    def keys(self, attention: Attention) -> Placed:
        """The keys of an attention to another sequence."""
        _, name = self._names(attention.kind)
        return self._place(name, attention.visible.any(2).any(1), attention)

    def observe(self, attention: Attention) -> Observed:
        """The weights of a call without padding; tokens say where that is if masks do not."""
        visible, queries = attention.visible, attention.queries
        keys = visible.any(2).any(1)
        if attention.kind == "context":
            queries, keys = self.queries(attention).valid, _among(keys, self.keys(attention).valid)
        elif attention.start == 0:
            queries = self.queries(attention).valid
            keys = _among(keys, queries)
        visible = visible & queries[:, None, :, None] & keys[:, None, None]
        weights = attention.weights
        weights = weights if weights.dtype == torch.float64 else weights.float()
        return Observed(torch.where(visible, weights, 0), visible, queries, keys)

    def _names(self, kind: str) -> tuple[str, str]:
        if kind == "context":
            return "target", "source"
        name = "target" if kind == "decoder" and self.sentences.target is not None else "source"
        return name, name

    def _place(self, name: str, seen: Tensor, attention: Attention) -> Placed:
        """Place the tokens of a side at the positions that the masks of the model show as `seen`."""
        tokens: Tokens | None = getattr(self.sentences, name)
        if tokens is None:
            return Placed(seen)
        place = name, seen.device
        if place not in self._placed:
            valid = self._valid(tokens, seen, attention)
            self._placed[place] = self._with_tokens(tokens, valid)
        placed = self._placed[place]
        if placed.valid.shape != seen.shape:
            got, expected = tuple(seen.shape), tuple(placed.valid.shape)
            raise FenchelError(
                f"all layers that see the {name} must have positions {expected}, "
                f"got {got} in {attention.name}"
            )
        return placed

    def _valid(self, tokens: Tokens, seen: Tensor, attention: Attention) -> Tensor:
        """Where the tokens are: where the masks say or, if they hide nothing, at the beginning."""
        batch, length = seen.shape
        lengths, counts = list(tokens.lengths or []), seen.sum(1).tolist()
        if len(lengths) != batch:
            raise FenchelError(
                f"a batch must have the tokens of all its sentences, got {len(lengths)} sentences "
                f"with tokens and {batch} in {attention.name}"
            )
        hidden, longest = min(counts, default=length) < length, max(lengths, default=0)
        expected = counts if hidden else [length if n == longest else n for n in lengths]
        for number, found, count in zip(self.numbers, lengths, expected, strict=True):
            if found != count:
                raise FenchelError(
                    f"the tokens of a sentence must be those that the model sees, got {found} tokens "
                    f"of sentence {number}, and {count} positions in {attention.name}"
                )
        return seen if hidden else within(torch.tensor(lengths, device=seen.device), length)

    def _with_tokens(self, tokens: Tokens, valid: Tensor) -> Placed:
        words, word_count, questions, interrogatives = None, 0, None, None
        if tokens.words is not None:
            flat = [-1 if word is None else word for word in chain.from_iterable(tokens.words)]
            word_count = max(flat, default=-1) + 1
            words = _fill(valid, torch.tensor(flat, dtype=torch.int64), -1)
        if tokens.strings is not None:
            strings = [word_of(token) for token in chain.from_iterable(tokens.strings)]
            marks = torch.tensor([string in QUESTION_MARKS for string in strings], dtype=torch.bool)
            asked = torch.tensor(
                [string in self._interrogatives for string in strings], dtype=torch.bool
            )
            questions, interrogatives = _fill(valid, marks, False), _fill(valid, asked, False)
        return Placed(valid, words, word_count, questions, interrogatives)


def _among(keys: Tensor, valid: Tensor) -> Tensor:
    """The keys that are tokens, and those after them that the layer adds itself."""
    extra = keys.shape[1] - valid.shape[1]
    return keys & torch.nn.functional.pad(valid, (0, extra), value=True)


def _fill(valid: Tensor, values: Tensor, otherwise: int | bool) -> Tensor:
    """A tensor with the values at the valid positions, row by row."""
    filled = torch.full(valid.shape, otherwise, dtype=values.dtype, device=valid.device)
    return filled.masked_scatter(valid, values.to(valid.device))
