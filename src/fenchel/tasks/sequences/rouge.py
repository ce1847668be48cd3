"""ROUGE-1, ROUGE-2 and ROUGE-L of predictions, by the package rouge-score."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from fenchel.extras import require

TYPES = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


def rouge(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Mean F1 over the pairs, times 100, under `rouge_1`, `rouge_2`, `rouge_l`.

    Tokens are the runs of a–z and 0–9 in the lower-cased text; they are not stemmed.

    Reference: Lin (2004), *ROUGE: A Package for Automatic Evaluation of Summaries*.

    >>> round(rouge(["the cat sat"], ["the cat sat on the mat"])["rouge_l"], 2)
    66.67
    """
    scorers = require("rouge_score.rouge_scorer", extra="train")
    scorer = scorers.RougeScorer(list(TYPES.values()), use_stemmer=False)
    scores = [scorer.score(r, p) for p, r in zip(predictions, references, strict=True)]
    return {name: 100 * fmean(s[kind].fmeasure for s in scores) for name, kind in TYPES.items()}
