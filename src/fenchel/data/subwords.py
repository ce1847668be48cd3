"""Byte-pair encoding of characters (Sennrich et al., 2016), by the library `tokenizers`.

A word starts with the mark "▁", and punctuation is cut off before pairs are merged; so every text
is put together again exactly, up to its white space.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fenchel.errors import rule
from fenchel.extras import require

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
        tokenizer = library.Tokenizer(library.models.BPE(unk_token=UNKNOWN))
        tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence(
            [library.pre_tokenizers.Metaspace(MARK), library.pre_tokenizers.Punctuation()]
        )
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
    def from_state(cls, state: dict[str, Any]) -> Subwords:
        """The subwords that had this `state`."""
        library = require("tokenizers", extra="train")
        try:
            return cls(library.Tokenizer.from_str(state["tokenizer"]))
        except Exception as error:  # the library raises nothing more specific
            expected = "the text that a tokenizer was stored as"
            raise rule("stored subwords are whole", expected=expected, got=error) from error


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _symbols(text: str, encoding: Encoding) -> list[str]:
    """The pieces; a character that was never seen stands for itself, not for "<unk>"."""
    pieces = encoding.tokens
    if UNKNOWN not in pieces:
        return pieces
    spans = zip(pieces, encoding.offsets, strict=True)
    return [text[start:end] if piece == UNKNOWN else piece for piece, (start, end) in spans]
