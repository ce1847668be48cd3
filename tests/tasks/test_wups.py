"""WUPS and the similarity of Wu and Palmer in WordNet."""

from __future__ import annotations

import pytest

from fenchel.data.wordnet import ROOT, _distances, _nouns, noun_similarity
from fenchel.tasks.wups import wups

WORDS = (
    "chair",
    "sofa",
    "window",
    "door",
    "casing",
    "red",
    "3",
    "washing_machine",
    "books",
    "xyzzy",
)
ANSWERS = ("chair", "sofa, table", "table, sofa", "red", "books, chair, lamp", "xyzzy")


@pytest.mark.parametrize("first", WORDS)
def test_a_similarity_is_symmetric_and_1_for_equal_words(first):
    assert noun_similarity(first, first) == 1
    for second in WORDS:
        found = noun_similarity(first, second)
        assert found == noun_similarity(second, first)
        assert 0 <= found <= 1
        if "xyzzy" in (first, second) and first != second:
            assert found == 0


def test_meanings_are_compared_by_their_deepest_common_ancestor():
    """A chair is a seat, and a seat is furniture."""
    assert noun_similarity("chair", "seat") > noun_similarity("chair", "furniture")
    assert noun_similarity("dog", "cat") > noun_similarity("dog", "chair")
    assert noun_similarity("dog", "idea") > 0  # under different roots


def test_meanings_are_under_the_root_even_where_they_are_above_each_other():
    some = [*_nouns().hypernyms][::50]
    cycle = ["n#02588950", "n#02399553"]  # a door and a casing
    assert all(ROOT in _distances(meaning) for meaning in [*some, *cycle])


@pytest.mark.parametrize(
    ("plural", "singular"),
    [("books", "book"), ("shelves", "shelf"), ("boxes", "box"), ("Dishes", "dish")],
)
def test_a_plural_has_the_meanings_of_its_singular(plural, singular):
    assert noun_similarity(plural, singular) == 1


@pytest.mark.parametrize("answer", ANSWERS)
def test_wups_is_1_for_equal_sets_only_and_grows_as_the_threshold_falls(answer):
    for expected in ANSWERS:
        strict, loose = wups(answer, expected), wups(answer, expected, threshold=0)
        assert 0 <= strict <= loose <= 1
        same = set(answer.split(", ")) == set(expected.split(", "))
        assert (strict == 1) == same


def test_wups_counts_dissimilar_answers_a_tenth():
    found = noun_similarity("chair", "window")
    assert 0 < found < 0.9
    assert wups("chair", "window") == pytest.approx(0.1 * found)
    assert wups("chair", "window", threshold=0) == found


def test_an_answer_too_many_or_too_few_costs_its_similarity():
    for pair in (("chair, window", "chair"), ("chair", "chair, window")):
        assert wups(*pair, threshold=0) == noun_similarity("chair", "window")
