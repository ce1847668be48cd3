"""Byte-pair encoding of characters (Sennrich et al., 2016), by the library `tokenizers`.

A word starts with the mark "▁", and punctuation is cut off before pairs are merged; so every text
is put together again exactly, up to its white space.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fenchel.errors import FenchelError, rule
from fenchel.extras import require
from fenchel.schema import from_json, parse_json

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MARK = "▁"
UNKNOWN = "<unk>"


class Subwords:
    """Frequent pieces of words are symbols, rare words are cut into pieces.

    >>> subwords = Subwords.train(["low lower", "low newest", "low widest"], merges=5)
    >>> subwords.split("lowest, low")
    ['▁low', 'est', ',', '▁low']
    >>> subwords.join(['▁low', 'est', ',', '▁low'])
    'lowest, low'
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @classmethod
    def train(cls, texts: Iterable[str], merges: int = 8000) -> Subwords:
        """Learn `merges` merges of the most frequent pairs; fewer if there are not as many."""
        if merges < 0:
            raise rule("merges are counted", expected="a number of merges, at least 0", got=merges)
        library = require("tokenizers", extra="train")
        spaced = [_spaced(text) for text in texts]
        tokenizer = _tokenizer(library)
        alphabet = {MARK}.union(*spaced) - {" "}
        trainer = library.trainers.BpeTrainer(
            vocab_size=len(alphabet) + 1 + merges,
            special_tokens=[UNKNOWN],
            show_progress=False,
        )
        tokenizer.train_from_iterator(spaced, trainer)
        return cls(tokenizer)

    def split(self, text: str) -> list[str]:
        return self.split_all([text])[0]

    def split_all(self, texts: list[str]) -> list[list[str]]:
        spaced = [_spaced(text) for text in texts]
        encodings = self._tokenizer.encode_batch(spaced, add_special_tokens=False)
        return [_symbols(*pair) for pair in zip(spaced, encodings, strict=True)]

    def join(self, symbols: list[str]) -> str:
        return "".join(symbols).replace(MARK, " ").strip()

    def state(self) -> dict[str, Any]:
        return {"kind": "subwords", "tokenizer": self._tokenizer.to_str()}

    @classmethod
    def from_text(cls, text: str, where: str) -> Subwords:
        """The subwords whose `state` holds this text under "tokenizer"; `where` is named in errors.

        Only vocabulary and merges are read: the rest is the same for all tokenizers of this class.
        """
        library = require("tokenizers", extra="train")
        try:
            value = parse_json(text)
        except ValueError as error:
            raise FenchelError(f"{where} must be JSON, got: {error}") from error
        stored = from_json(dict[str, Any], value, where)
        model = from_json(dict[str, Any], stored.get("model"), where, "model")
        ids = from_json(dict[str, int], model.get("vocab"), where, "model.vocab")
        merges = from_json(list[list[str]], model.get("merges"), where, "model.merges")
        if UNKNOWN not in ids or len(set(ids.values())) < len(ids):
            raise FenchelError(f"{where}: model.vocab must have {UNKNOWN} and unique ids")
        try:
            tokenizer = _tokenizer(library, vocab=ids, merges=[tuple(pair) for pair in merges])
            tokenizer.add_special_tokens([UNKNOWN])
        except Exception as error:  # tokenizers raises nothing more specific
            raise FenchelError(f"{where} must be a stored tokenizer, got: {error}") from error
        return cls(tokenizer)


def _tokenizer(library: Any, **learned: Any) -> Tokenizer:
    tokenizer = library.Tokenizer(library.models.BPE(unk_token=UNKNOWN, **learned))
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence(
        [library.pre_tokenizers.Metaspace(MARK), library.pre_tokenizers.Punctuation()]
    )
    return tokenizer


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _symbols(text: str, encoding: Encoding) -> list[str]:
    """The pieces; a character that was never seen stands for itself, not for "<unk>"."""
    pieces = encoding.tokens
    if UNKNOWN not in pieces:
        return pieces
    spans = zip(pieces, encoding.offsets, strict=True)
    return [text[start:end] if piece == UNKNOWN else piece for piece, (start, end) in spans]
