"""The figures of an evaluation with what they mean, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MEANINGS = {
    "accuracy": "% right answers, averaged over languages",
    "bleu": "BLEU",
    "chrf": "chrF",
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
    "single": "% with one answer of non-zero probability",
    "complete": "% with all answers of non-zero probability found",
    "certified": "% proven to be the most probable",
    "attention_support": "source positions attended, on average",
    "output_support": "symbols considered, on average",
    "token_accuracy": "% right next symbols",
    "examples": "that were measured",
}


def explained(figures: Mapping[str, Any], metric: str) -> list[tuple[str, Any, str]]:
    """Name, value and meaning of each figure that was measured, the main one first.

    >>> explained({"examples": 8, "bleu": None, "accuracy": 12.5}, "accuracy")[1]
    ('examples', 8, 'that were measured')
    """
    names = [metric, *(name for name in MEANINGS if name != metric)]
    return [
        (name, figures[name], MEANINGS.get(name, ""))
        for name in names
        if figures.get(name) is not None
    ]
