"""Texts become numbers and numbers the same texts again."""

from __future__ import annotations

import json
import sys
from unicodedata import normalize

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fenchel import FenchelError
from fenchel.data import Characters, Subwords, Vocabulary, Words
from fenchel.data.segmentation import StoredSegmentation
from fenchel.data.vocabulary import BOS, EOS, PAD, SPECIAL, UNK
from fenchel.settings import from_json
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.example import Example

CORPUS = ["the lowest tree, is low", "a newer tree (new)", "the widest, newest tree: it's wide"]
SEGMENTATIONS = [Characters(), Words(), Subwords.train(CORPUS * 3, merges=30)]
texts = st.text(alphabet="abetw,.' <>äλ▂", max_size=20).map(lambda text: " ".join(text.split()))
symbols = st.text(alphabet="ab<>ä", min_size=1, max_size=3) | st.sampled_from(SPECIAL)


@given(st.sets(symbols), st.lists(symbols))
def test_a_vocabulary_knows_its_symbols_and_no_other(own, asked):
    vocabulary = Vocabulary(sorted(own))
    ids = vocabulary.ids(asked)
    known = [symbol if symbol in own else SPECIAL[UNK] for symbol in asked]
    assert vocabulary.symbols(ids) == known
    assert not {PAD, BOS, EOS} & set(ids)
    assert len(vocabulary) == len(own) + 4
    stored = json.loads(json.dumps(vocabulary.state()))
    assert Vocabulary.from_state(stored) == vocabulary


@given(st.lists(st.sampled_from("abcdef")))
def test_the_frequent_come_first_whatever_the_order_of_the_text(text):
    vocabulary = Vocabulary.build(text, min_count=2, max_size=3)
    assert vocabulary == Vocabulary.build(reversed(text), min_count=2, max_size=3)
    frequent = sorted(set(text), key=lambda symbol: (-text.count(symbol), symbol))
    assert vocabulary.state() == [symbol for symbol in frequent if text.count(symbol) > 1][:3]


def test_a_symbol_is_not_twice_in_a_vocabulary():
    with pytest.raises(FenchelError, match="symbols must be unique, got 'a' more than once"):
        Vocabulary("aba")


def test_a_stored_vocabulary_is_a_list_of_unique_symbols():
    for state in ({"a": 1}, "abc", None):
        with pytest.raises(FenchelError, match=r"^vocabulary must be a list, got "):
            Vocabulary.from_state(state)
    with pytest.raises(FenchelError, match=r"^vocabulary: \[1\] must be a string, got 2$"):
        Vocabulary.from_state(["a", 2])
    with pytest.raises(FenchelError, match=r"^vocabulary: symbols must be unique"):
        Vocabulary.from_state(["a", "a"])


@pytest.mark.parametrize("segmentation", SEGMENTATIONS, ids=lambda s: type(s).__name__)
@given(text=texts, others=st.lists(texts, max_size=3))
def test_splitting_and_joining_gives_the_text(segmentation, text, others):
    split = segmentation.split(text)
    assert segmentation.join(split) == text
    assert segmentation.split_all([*others, text])[-1] == split
    state = json.loads(json.dumps(segmentation.state()))
    stored = from_json(StoredSegmentation, state, "state").restore("state")
    assert stored.split(text) == split


def test_subwords_are_as_many_as_merges_at_most_and_always_the_same():
    characters = Subwords.train(CORPUS, merges=0)
    assert characters.split("new,") == ["▁", "n", "e", "w", ","]
    many = [Subwords.train(CORPUS * 100, merges=20) for _ in range(3)]
    assert many[0].state() == many[1].state() == many[2].state()
    learned = json.loads(many[0].state()["tokenizer"])["model"]["merges"]
    assert len(learned) == 20
    with pytest.raises(FenchelError, match="at least 0, got -1"):
        Subwords.train(CORPUS, merges=-1)


def test_a_character_that_subwords_never_saw_stands_for_itself():
    assert SEGMENTATIONS[2].split("tree 日") == ["▁tree", "▁", "日"]


def test_subwords_need_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(
        FenchelError, match=r"tokenizers must be installed with the extra fenchel\[train\]"
    ):
        Subwords.train(CORPUS)


WORDS = [
    Example("Vieh", "viel", ("de", "V", "3"), "de"),
    Example("3V", "drei", ("de", "N"), "de"),
    Example("ev", "evler", ("tr", "N", "PL"), "tr"),
]


@pytest.mark.parametrize("kind", ["characters", "words", "subwords"])
@pytest.mark.parametrize("joint", [False, True])
def test_a_codec_decodes_what_it_encodes_also_when_it_was_stored(kind, joint):
    codec = Codec.fit(WORDS, segmentation=kind, merges=4, joint=joint)
    stored = Codec.from_state(json.loads(json.dumps(codec.state())))
    assert stored.joint == codec.joint == joint
    assert stored.languages == ("de", "tr")
    for example in WORDS:
        target = codec.encode_target(example)
        assert target[-1] == EOS
        assert codec.decode([BOS, *target, 7, PAD]) == example.target
        assert codec.decode(torch.tensor(target)) == example.target
        assert stored.encode_source(example) == codec.encode_source(example)
        assert stored.encode_target(example) == target
        assert codec.unknown(example) == []
        read = codec.source_vocabulary.symbols(codec.encode_source(example))
        assert read == codec.source_symbols(example)
    assert codec.encode_sources(WORDS) == [codec.encode_source(e) for e in WORDS]
    assert codec.encode_targets(WORDS) == [codec.encode_target(e) for e in WORDS]


def test_a_tag_is_not_the_letter_of_the_same_name():
    codec = Codec.fit(WORDS)
    symbols = codec.source_symbols(Example("V3", tags=("V", "3")))
    assert symbols == ["<V>", "<3>", "V", "3"]
    assert len(set(codec.source_vocabulary.ids(symbols))) == 4


def test_the_language_is_a_symbol_where_there_are_several():
    assert Codec.fit(WORDS).source_symbols(WORDS[1])[:2] == ["<de>", "<N>"]
    german = Codec.fit(WORDS[:2])
    assert german.source_symbols(WORDS[1])[:1] == ["<N>"]
    nameless = Example("3V", tags=("N",))
    other = Example("3V", tags=("input", "N"), group="input")
    expected = german.encode_source(WORDS[1])
    assert german.encode_source(nameless) == german.encode_source(other) == expected


def test_unknown_symbols_are_named_once_in_their_order():
    codec = Codec.fit(WORDS)
    example = Example("xyVx", tags=("fi", "N", "DU"), group="fi")
    assert codec.unknown(example) == ["<fi>", "<DU>", "x", "y"]
    assert codec.encode_source(example).count(UNK) == 5


@pytest.mark.parametrize("kind", ["characters", "words", "subwords"])
def test_one_letter_has_one_spelling_unless_told_apart(kind):
    composed, decomposed = (normalize(form, "señal canción") for form in ("NFC", "NFD"))
    told, other = Example(composed, composed), Example(decomposed, decomposed)
    codec = Codec.fit([told], segmentation=kind, merges=20, normalization="NFC")
    assert codec.source_symbols(other) == codec.source_symbols(told)
    assert codec.encode_sources([other]) == codec.encode_sources([told])
    assert codec.encode_targets([other]) == codec.encode_targets([told])
    assert codec.unknown(other) == []
    assert codec.decode(codec.encode_target(other)) == composed
    assert Codec.from_state(json.loads(json.dumps(codec.state()))).unknown(other) == []
    assert Codec.fit([other], segmentation=kind, merges=20, normalization="NFC").state() == (
        codec.state()
    )
    apart = Codec.fit([told], segmentation=kind, merges=20)
    assert apart.unknown(other)
    assert Codec.from_state(apart.state()).unknown(other) == apart.unknown(other)


def test_a_normal_form_that_does_not_exist_is_refused():
    with pytest.raises(FenchelError, match="one of none, NFC, NFD, NFKC, NFKD, got 'nf'"):
        Codec.fit([Example("a", "b")], normalization="nf")  # type: ignore[arg-type]


def test_a_number_outside_the_vocabulary_is_refused():
    for outside in (5, -1, -100):
        with pytest.raises(FenchelError, match=f"ids must be between 0 and 4, got {outside}"):
            Vocabulary(["a"]).symbols([4, outside])
    with pytest.raises(FenchelError, match="max_size must be a whole number of at least 0"):
        Vocabulary.build("aab", max_size=-1)


def test_rare_symbols_are_unknown():
    codec = Codec.fit([Example("a a b", "x y y")], segmentation="words", min_count=2)
    assert codec.source_vocabulary.state() == ["a"]
    assert codec.decode(codec.encode_target(Example("a", "y x"))) == "y <unk>"


def test_a_text_cannot_end_or_pad_its_target():
    text = "<pad> </s> <s> b"
    codec = Codec.fit([Example("a", text)], segmentation="words")
    assert codec.decode(codec.encode_target(Example("a", text))) == text


def test_what_cannot_be_learned_from_is_said():
    with pytest.raises(FenchelError, match="at least one example, got none"):
        Codec.fit([])
    with pytest.raises(FenchelError, match=r"must have a target, got none for 'b' \(number 2\)"):
        Codec.fit([Example("a", "a"), Example("b")])
    with pytest.raises(FenchelError, match="one of characters, words, subwords, got 'letters'"):
        Codec.fit(WORDS, segmentation="letters")


@pytest.mark.parametrize("broken", [None, {}, {"format": 99}, {"format": 1}])
def test_a_stored_codec_of_another_form_is_refused(broken):
    with pytest.raises(FenchelError, match=r"^codec must have (format 1, got|the key 'languages')"):
        Codec.from_state(broken)


def test_a_stored_codec_that_lost_a_part_is_refused():
    state = Codec.fit(WORDS).state()
    del state["target"]["vocabulary"]
    with pytest.raises(FenchelError, match="codec: target must have the key 'vocabulary'"):
        Codec.from_state(state)


def test_stored_subwords_that_are_cut_short_are_refused():
    state = Codec.fit(WORDS, segmentation="subwords", merges=2).state()
    segmentation = state["source"]["segmentation"]
    segmentation["tokenizer"] = segmentation["tokenizer"][:50]
    message = r"codec: source\.segmentation\.tokenizer must be JSON, got: "
    with pytest.raises(FenchelError, match=message):
        Codec.from_state(state)
