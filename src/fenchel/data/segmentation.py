"""Text to symbols and back: Unicode normalization, then characters, words or subwords."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from fenchel.checks import check_count
from fenchel.errors import FenchelError
from fenchel.extras import require
from fenchel.settings import from_json
from fenchel.stored_json import parse_json

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Normalization = Literal["none", "NFC", "NFD", "NFKC", "NFKD"]
Kind = Literal["characters", "words", "subwords"]
MARK = "▁"  # before each word of subwords
UNKNOWN = "<unk>"


def normalized(text: str, form: Normalization) -> str:
    """Return a text in a Unicode normal form; "none" leaves it as it is.

    In Unicode an é is one code point, or an e and an accent; normal forms have only one of the two.

    >>> [len(normalized(text, "NFC")) for text in ("é", "e" + chr(0x301))]
    [1, 1]
    """
    return text if form == "none" else unicodedata.normalize(form, text)


def check_normalization(form: str) -> None:
    """Check the name of a normal form."""
    forms = get_args(Normalization)
    if form not in forms:
        raise FenchelError(f"normalization must be one of {', '.join(forms)}, got {form!r}")


class Segmentation(Protocol):
    """Splits texts into symbols and joins them; `join(split(text))` is `text`, up to white space."""

    def split(self, text: str) -> list[str]:
        """Return the symbols of a text."""
        ...

    def split_all(self, texts: list[str]) -> list[list[str]]:
        """Return the symbols of several texts; this can be faster than a loop."""
        ...

    def join(self, symbols: list[str]) -> str:
        """Return the text of a list of symbols."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the fields of a `StoredSegmentation`, which can be stored as JSON."""
        ...


class Characters:
    """Each character is a symbol.

    >>> Characters().split("señal")
    ['s', 'e', 'ñ', 'a', 'l']
    """

    def split(self, text: str) -> list[str]:
        return list(text)

    def split_all(self, texts: list[str]) -> list[list[str]]:
        return [list(text) for text in texts]

    def join(self, symbols: list[str]) -> str:
        return "".join(symbols)

    def state(self) -> dict[str, Any]:
        return {"kind": "characters"}


class Words:
    """Each word between white space is a symbol, for text that is already tokenised.

    >>> Words().split("a b, c")
    ['a', 'b,', 'c']
    """

    def split(self, text: str) -> list[str]:
        return text.split()

    def split_all(self, texts: list[str]) -> list[list[str]]:
        return [text.split() for text in texts]

    def join(self, symbols: list[str]) -> str:
        return " ".join(symbols)

    def state(self) -> dict[str, Any]:
        return {"kind": "words"}


class Subwords:
    """Byte-pair encoding of characters (Sennrich et al., 2016): rare words are several symbols.

    Each word starts with the mark "▁", and punctuation is split off before pairs are merged.

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
        """Learn `merges` merges of the most frequent pairs, or fewer if there are fewer pairs."""
        check_count(merges, "merges", least=0)
        library = require("tokenizers", extra="train")
        spaced = [_single_spaces(text) for text in texts]
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
        spaced = [_single_spaces(text) for text in texts]
        encodings = self._tokenizer.encode_batch(spaced, add_special_tokens=False)
        return [_symbols(*pair) for pair in zip(spaced, encodings, strict=True)]

    def join(self, symbols: list[str]) -> str:
        return "".join(symbols).replace(MARK, " ").strip()

    def state(self) -> dict[str, Any]:
        return {"kind": "subwords", "tokenizer": self._tokenizer.to_str()}

    @classmethod
    def from_text(cls, text: str, where: str) -> Subwords:
        """Restore subwords from the JSON text of their tokenizer; `where` is named in errors.

        Only the vocabulary and the merges are read: all else is the same for every tokenizer.
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


@dataclass(frozen=True)
class StoredSegmentation:
    """The `state` of a segmentation; `tokenizer` is the JSON text of the tokenizer of subwords."""

    kind: Kind
    tokenizer: str | None = None

    def restore(self, where: str) -> Segmentation:
        """Return the segmentation with this state; `where` is named in errors."""
        if self.kind != "subwords":
            return _without_training(self.kind)
        if self.tokenizer is None:
            raise FenchelError(f"{where} must have the key 'tokenizer'")
        return Subwords.from_text(self.tokenizer, f"{where}.tokenizer")


def learn(kind: str, texts: list[str], merges: int) -> Segmentation:
    """Return the segmentation of this kind; subwords are learned from the texts."""
    if kind == "subwords":
        return Subwords.train(texts, merges)
    return _without_training(kind)


def _without_training(kind: str) -> Segmentation:
    if kind == "characters":
        return Characters()
    if kind == "words":
        return Words()
    kinds = ", ".join(get_args(Kind))
    raise FenchelError(f"segmentation must be one of {kinds}, got {kind!r}")


def _tokenizer(library: Any, **learned: Any) -> Tokenizer:
    tokenizer = library.Tokenizer(library.models.BPE(unk_token=UNKNOWN, **learned))
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence(
        [library.pre_tokenizers.Metaspace(MARK), library.pre_tokenizers.Punctuation()]
    )
    return tokenizer


def _single_spaces(text: str) -> str:
    return " ".join(text.split())


def _symbols(text: str, encoding: Encoding) -> list[str]:
    """Return the pieces of a text; a character never seen is kept, not replaced by <unk>."""
    pieces = encoding.tokens
    if UNKNOWN not in pieces:
        return pieces
    spans = zip(pieces, encoding.offsets, strict=True)
    return [text[start:end] if piece == UNKNOWN else piece for piece, (start, end) in spans]
