"""Texts to numbers and back, for both sides of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from fenchel.data.segmentation import (
    Characters,
    Normalization,
    Segmentation,
    StoredSegmentation,
    check_normalization,
    learn,
    normalized,
)
from fenchel.data.vocabulary import BOS, EOS, PAD, Vocabulary
from fenchel.errors import FenchelError
from fenchel.settings import from_json
from fenchel.stored_json import shortened
from fenchel.tasks.sequences.encoded import SequencePairs
from fenchel.tasks.sequences.example import Example

MERGES = 8000
FORMAT = 1


class Codec:
    """What a model reads and writes, as numbers.

    A source is its tags, each in angle brackets so that the tag "V" is not the letter "V", and then
    the symbols of its text; a target ends with EOS. The language is among the tags if the examples
    that the codec was fitted to are in several languages, and is left out otherwise.

    >>> words = [Example("draw", "drawn", ("V", "PTCP")), Example("see", "seen", ("V", "PTCP"))]
    >>> codec = Codec.fit(words)
    >>> codec.source_symbols(words[1])
    ['<V>', '<PTCP>', 's', 'e', 'e']
    >>> codec.decode(codec.encode_target(words[1]))
    'seen'
    >>> codec.unknown(Example("fax", tags=("V",)))
    ['f', 'x']
    """

    def __init__(
        self,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        source_segmentation: Segmentation,
        target_segmentation: Segmentation,
        languages: Iterable[str] = (),
        normalization: Normalization = "none",
    ) -> None:
        check_normalization(normalization)
        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        self.source_segmentation = source_segmentation
        self.target_segmentation = target_segmentation
        self.languages = tuple(sorted(set(languages)))
        self.normalization: Normalization = normalization

    @classmethod
    def fit(
        cls,
        examples: Sequence[Example],
        *,
        segmentation: str = "characters",
        merges: int = MERGES,
        joint: bool = False,
        min_count: int = 1,
        normalization: Normalization = "none",
    ) -> Codec:
        """The codec of a training set.

        Args:
            examples: Examples with targets.
            segmentation: "characters", "words" or "subwords".
            merges: Of subwords: how many pairs are merged, on each side or jointly.
            joint: One segmentation and one vocabulary for both sides.
            min_count: Symbols that occur less often are unknown.
            normalization: The normal form of Unicode ("NFC", "NFD", "NFKC", "NFKD") in which
                everything is read and written; "none" tells apart what is spelled differently.
        """
        if not examples:
            raise FenchelError("training requires at least one example, got none")
        check_normalization(normalization)
        sources = [normalized(example.source, normalization) for example in examples]
        given = [_target(example, place) for place, example in enumerate(examples)]
        targets = [normalized(target, normalization) for target in given]
        if joint:
            source_segmentation = learn(segmentation, [*sources, *targets], merges)
            target_segmentation = source_segmentation
        else:
            source_segmentation = learn(segmentation, sources, merges)
            target_segmentation = learn(segmentation, targets, merges)
        languages = {example.group for example in examples if example.has_language}
        codec = cls(
            Vocabulary(()),
            Vocabulary(()),
            source_segmentation,
            target_segmentation,
            languages,
            normalization,
        )
        source_counts = Counter(chain.from_iterable(codec.all_source_symbols(examples)))
        target_counts = Counter(chain.from_iterable(target_segmentation.split_all(targets)))
        if joint:
            source_counts.update(target_counts)
            target_counts = source_counts
        codec.source_vocabulary = Vocabulary.from_counts(source_counts, min_count)
        codec.target_vocabulary = (
            codec.source_vocabulary if joint else Vocabulary.from_counts(target_counts, min_count)
        )
        return codec

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self.source_vocabulary is self.target_vocabulary

    def tags(self, example: Example) -> tuple[str, ...]:
        """The tags that the model sees: the language is one of them where there are several."""
        unseen = len(self.languages) < 2 and example.has_language
        return example.tags[1:] if unseen else example.tags

    def normalized(self, text: str) -> str:
        """The text as the model spells it."""
        return normalized(text, self.normalization)

    def source_symbols(self, example: Example) -> list[str]:
        """The symbols that the model reads: tags, then the segments of the source."""
        text = self.source_segmentation.split(self.normalized(example.source))
        return [*_in_brackets(self.tags(example)), *text]

    def all_source_symbols(self, examples: Sequence[Example]) -> list[list[str]]:
        """The `source_symbols` of every example, found together."""
        sources = [self.normalized(example.source) for example in examples]
        texts = self.source_segmentation.split_all(sources)
        return [
            [*_in_brackets(self.tags(example)), *text]
            for example, text in zip(examples, texts, strict=True)
        ]

    def target_symbols(self, text: str) -> list[str]:
        """The segments of a target."""
        return self.target_segmentation.split(self.normalized(text))

    def encode_source(self, example: Example) -> list[int]:
        """The numbers of the `source_symbols`; UNK for symbols that are unknown."""
        return self.source_vocabulary.ids(self.source_symbols(example))

    def encode_target(self, example: Example) -> list[int]:
        """The numbers of the target's symbols, with EOS at the end."""
        symbols = self.target_symbols(_target(example))
        return [*self.target_vocabulary.ids(symbols), EOS]

    def encode_sources(self, examples: Sequence[Example]) -> list[list[int]]:
        """`encode_source` of every example."""
        return [
            self.source_vocabulary.ids(symbols) for symbols in self.all_source_symbols(examples)
        ]

    def encode_targets(self, examples: Sequence[Example]) -> list[list[int]]:
        """`encode_target` of every example."""
        given = [_target(example, place) for place, example in enumerate(examples)]
        texts = [self.normalized(target) for target in given]
        ids = self.target_vocabulary.ids
        return [[*ids(symbols), EOS] for symbols in self.target_segmentation.split_all(texts)]

    def encode(self, examples: Sequence[Example]) -> SequencePairs:
        """Examples with targets as tensors."""
        for place, example in enumerate(examples):
            _target(example, place)
        return SequencePairs.of(examples, self)

    def unknown(self, example: Example) -> list[str]:
        """The symbols of the source that the model does not know, each once."""
        unknown = (s for s in self.source_symbols(example) if s not in self.source_vocabulary)
        return list(dict.fromkeys(unknown))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of target numbers, up to the first EOS; PAD and BOS have no text."""
        kept = []
        for i in map(int, ids):
            if i == EOS:
                break
            if i not in (PAD, BOS):
                kept.append(i)
        return self.target_segmentation.join(self.target_vocabulary.symbols(kept))

    def target_symbol(self, token: int) -> str:
        """The symbol of one target number, as a lattice shows it."""
        return self.target_vocabulary.symbols([token])[0]

    @property
    def separator(self) -> str:
        """What stands between target symbols that are shown one by one: nothing between letters."""
        return "" if isinstance(self.target_segmentation, Characters) else " "

    def state(self) -> dict[str, Any]:
        """What `from_state` needs, as JSON can hold it."""
        state: dict[str, Any] = {
            "format": FORMAT,
            "languages": list(self.languages),
            "source": _side(self.source_segmentation, self.source_vocabulary),
        }
        if self.normalization != "none":
            state["normalization"] = self.normalization
        if not self.joint:
            state["target"] = _side(self.target_segmentation, self.target_vocabulary)
        return state

    @classmethod
    def from_state(cls, state: Any, where: str = "codec") -> Codec:
        """The codec that had this `state`; `where` is named in errors."""
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            got = state.get("format") if isinstance(state, dict) else state
            raise FenchelError(f"{where} must have format {FORMAT}, got {shortened(got)}")
        stored = from_json(_StoredCodec, state, where)
        source, segmentation = stored.source.restore(f"{where}: source")
        target, target_segmentation = source, segmentation
        if stored.target is not None:
            target, target_segmentation = stored.target.restore(f"{where}: target")
        return cls(
            source,
            target,
            segmentation,
            target_segmentation,
            stored.languages,
            stored.normalization,
        )


@dataclass(frozen=True)
class _StoredSide:
    segmentation: StoredSegmentation
    vocabulary: list[str]

    def restore(self, where: str) -> tuple[Vocabulary, Segmentation]:
        segmentation = self.segmentation.restore(f"{where}.segmentation")
        return Vocabulary.from_state(self.vocabulary, f"{where}.vocabulary"), segmentation


@dataclass(frozen=True)
class _StoredCodec:
    """What `Codec.state` returns; without a target, both sides share the source's."""

    format: int
    languages: list[str]
    source: _StoredSide
    target: _StoredSide | None = None
    normalization: Normalization = "none"


@lru_cache(maxsize=2**16)
def _in_brackets(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"<{tag}>" for tag in tags)


def _side(segmentation: Segmentation, vocabulary: Vocabulary) -> dict[str, Any]:
    return {"segmentation": segmentation.state(), "vocabulary": vocabulary.state()}


def _target(example: Example, place: int | None = None) -> str:
    if example.target is None:
        which = "" if place is None else f" (number {place + 1})"
        got = f"none for {example.source[:40]!r}{which}"
        raise FenchelError(f"every example must have a target, got {got}")
    return example.target
