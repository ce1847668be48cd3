"""The tokens of a batch are consistent."""

from __future__ import annotations

import pytest

from fenchel.data.segmentation import Subwords
from fenchel.data.sentences import Sentences, Tokens, word_numbers
from fenchel.errors import FenchelError


def test_lengths_come_from_any_of_the_parts():
    assert Tokens([["a", "b"], []]).lengths == [2, 0]
    assert Tokens(words=[[0, 0, 1]]).lengths == [3]
    assert Tokens(lengths=[4, 1]).lengths == [4, 1]
    assert len(Tokens(lengths=[4, 1])) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "tokens must have strings, words or lengths, got none of them"),
        (
            {"strings": [["a"]], "words": [[0, 1]]},
            r"strings and words of tokens .* got \[1\] and \[2\]",
        ),
        (
            {"words": [[0]], "lengths": [1, 1]},
            r"words and lengths of tokens .* got \[1\] and \[1, 1\]",
        ),
    ],
)
def test_parts_that_disagree_are_errors(given, message):
    with pytest.raises(FenchelError, match=message):
        Tokens(**given)


def test_all_parts_of_a_batch_have_the_same_sentences():
    assert Sentences(None).count is None
    assert Sentences(None, source=[["a"], ["b"]], numbers=[7, 8]).count == 2
    with pytest.raises(FenchelError, match="same sentences, got 2 in source, 1 in target"):
        Sentences(None, source=[["a"], ["b"]], target=[["a"]])


def test_the_words_of_subwords_are_those_of_the_text():
    text = "the lowest lower-newest word (low), lowest!"
    subwords = Subwords.train([text] * 2, merges=12)
    tokens = subwords.split(text)
    numbers = word_numbers(tokens)
    words: dict[int, str] = {}
    for token, number in zip(tokens, numbers, strict=True):
        words[number] = words.get(number, "") + token.removeprefix("▁")
    expected = ["the", "lowest", "lower-newest", "word", "(", "low", ")", ",", "lowest", "!"]
    assert list(words.values()) == expected
    assert len(tokens) > len(expected)


def test_special_tokens_are_no_words():
    assert word_numbers(["<s>", "▁a", "</s>"]) == [None, 0, None]
    assert word_numbers([]) == []
