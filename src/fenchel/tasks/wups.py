"""WUPS: accuracy of answers that counts words of similar meaning in part."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from fenchel.data.wordnet import noun_similarity

THRESHOLD = 0.9
DOWN_WEIGHT = 0.1  # of similarities below the threshold


def answer_set(answer: str) -> frozenset[str]:
    """The answers between commas.

    >>> sorted(answer_set("table, chair"))
    ['chair', 'table']
    """
    return frozenset(part.strip() for part in answer.split(",") if part.strip())


def wups(answer: str, expected: str, threshold: float = THRESHOLD) -> float:
    """The score of an answer in [0, 1], which is 1 for the expected one.

    Both are sets A and T: min(∏_{a ∈ A} max_{t ∈ T} μ(a, t), ∏_{t ∈ T} max_{a ∈ A} μ(a, t)), where μ is
    the similarity of Wu and Palmer (`fenchel.data.wordnet`), times 0.1 if it is below the threshold. At
    threshold 0 nothing is weighted down.

    Reference: Malinowski and Fritz (2014), *A Multi-World Approach to Question Answering about
    Real-World Scenes based on Uncertain Input*.

    >>> wups("chair", "chair"), wups("chair, table", "table, chair")
    (1.0, 1.0)
    >>> wups("sofa", "chair", threshold=0) > wups("sofa", "chair") > wups("window", "chair")
    True
    """
    own, theirs = answer_set(answer), answer_set(expected)
    return min(_covered(own, theirs, threshold), _covered(theirs, own, threshold))


def _covered(words: Iterable[str], others: Iterable[str], threshold: float) -> float:
    nearest = (max((_similarity(a, b, threshold) for b in others), default=0.0) for a in words)
    return prod(nearest)


def _similarity(first: str, second: str, threshold: float) -> float:
    found = noun_similarity(first, second)
    return found if found >= threshold else DOWN_WEIGHT * found
