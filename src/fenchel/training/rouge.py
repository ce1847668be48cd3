"""ROUGE-1, ROUGE-2 and ROUGE-L of one reference and one prediction."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean


def rouge(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Mean F1 over the pairs, times 100, under `rouge_1`, `rouge_2`, `rouge_l`.

    Tokens are the runs of a–z and 0–9 of the lower-cased text. ROUGE-n counts the n-grams that both
    sides have, ROUGE-L the length of their longest common subsequence; precision divides by the
    prediction's number, recall by the reference's. Without stemming.

    Reference: Lin (2004), *ROUGE: A Package for Automatic Evaluation of Summaries*.

    >>> round(rouge(["the cat sat"], ["the cat sat on the mat"])["rouge_l"], 2)
    66.67
    """
    pairs = [(_tokens(p), _tokens(r)) for p, r in zip(predictions, references, strict=True)]
    return {
        "rouge_1": 100 * fmean(_by_grams(p, r, 1) for p, r in pairs),
        "rouge_2": 100 * fmean(_by_grams(p, r, 2) for p, r in pairs),
        "rouge_l": 100 * fmean(_f1(_common_subsequence(p, r), len(p), len(r)) for p, r in pairs),
    }


def _tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _by_grams(prediction: list[str], reference: list[str], n: int) -> float:
    ours, theirs = _grams(prediction, n), _grams(reference, n)
    return _f1((ours & theirs).total(), ours.total(), theirs.total())


def _grams(tokens: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


def _f1(hits: int, predicted: int, expected: int) -> float:
    return 2 * hits / (predicted + expected) if hits else 0.0


def _common_subsequence(first: list[str], second: list[str]) -> int:
    """The length of the longest common subsequence, by dynamic programming over `second`."""
    row = [0] * (len(second) + 1)
    for token in first:
        diagonal = 0
        for place, other in enumerate(second, start=1):
            above = row[place]
            row[place] = diagonal + 1 if token == other else max(above, row[place - 1])
            diagonal = above
    return row[-1]
