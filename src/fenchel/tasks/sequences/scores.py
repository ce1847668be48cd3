"""Metrics of a set of answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from fenchel.errors import FenchelError, unknown
from fenchel.extras import require
from fenchel.search import Answer
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.rouge import rouge

METRICS = {"accuracy": "% accuracy", "bleu": "BLEU", "rouge_l": "ROUGE-L"}


@dataclass(frozen=True)
class Scores:
    """Metrics of a set of answers; shares and accuracies are in percent.

    Attributes:
        metric: Name of the main metric.
        values: The main metric and related ones.
        single, complete, certified: Shares of answers that are the only sequence of non-zero
            probability, that list all such sequences, and that are proven to be the most probable.
        examples: Number of examples.
        groups: Accuracy by group (language), for "accuracy".
        signature: The settings of BLEU and chrF.
    """

    metric: str
    values: dict[str, float]
    single: float
    complete: float
    certified: float
    examples: int
    groups: dict[str, float] = field(default_factory=dict)
    signature: str = ""

    @property
    def main(self) -> float:
        """The main metric."""
        return self.values[self.metric]

    def state(self) -> dict[str, Any]:
        """The scores as JSON, the main metric first."""
        shares = {name: getattr(self, name) for name in ("single", "complete", "certified")}
        state: dict[str, Any] = {**self.values, **shares, "examples": self.examples}
        if self.groups:
            state["groups"] = self.groups
        if self.signature:
            state["signature"] = self.signature
        return state


def score(
    answers: Sequence[Answer], examples: Sequence[Example], codec: Codec, metric: str = "accuracy"
) -> Scores:
    """Compare the best hypothesis of every answer with the target in the codec's normal form.

    Args:
        answers: Answers of `decode`, in the order of the examples.
        examples: Examples with targets.
        codec: The codec of the model.
        metric: "accuracy" (of whole sequences, averaged over the groups), "bleu" (with chrF) or
            "rouge_l" (with ROUGE-1 and ROUGE-2).
    """
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    if not examples or len(answers) != len(examples):
        got = f"{len(answers)} answers for {len(examples)} examples"
        raise FenchelError(f"score requires one answer per example and at least one, got {got}")
    texts = [codec.decode(answer.best.tokens) for answer in answers]
    targets = [codec.normalized(_target(example)) for example in examples]
    groups, signature = {}, ""
    if metric == "accuracy":
        groups = accuracy_by_group(texts, targets, [example.group for example in examples])
        values = {"accuracy": fmean(groups.values())}
    elif metric == "bleu":
        values, signature = bleu(texts, targets)
    else:
        values = rouge(texts, targets)
    return Scores(
        metric, values, **shares(answers), examples=len(examples), groups=groups,
        signature=signature,
    )  # fmt: skip


def shares(answers: Sequence[Answer]) -> dict[str, float]:
    """Shares of `single`, `complete` and `certified` answers, in percent."""
    names = ("single", "complete", "certified")
    return {name: 100 * fmean(getattr(answer, name) for answer in answers) for name in names}


def accuracy_by_group(
    texts: Sequence[str], targets: Sequence[str], groups: Sequence[str]
) -> dict[str, float]:
    """Percentage of texts that equal their target, by group.

    >>> accuracy_by_group(["ab", "c"], ["ab", "d"], ["en", "de"])
    {'de': 0.0, 'en': 100.0}
    """
    right: defaultdict[str, list[bool]] = defaultdict(list)
    for text, target, group in zip(texts, targets, groups, strict=True):
        right[group].append(text == target)
    return {group: 100 * fmean(right[group]) for group in sorted(right)}


def bleu(texts: Sequence[str], targets: Sequence[str]) -> tuple[dict[str, float], str]:
    """BLEU and chrF of sacrebleu, and the signature of both."""
    metrics = require("sacrebleu.metrics", extra="train")
    values, signatures = {}, []
    for name, metric in (("bleu", metrics.BLEU()), ("chrf", metrics.CHRF())):
        values[name] = metric.corpus_score(list(texts), [list(targets)]).score
        signatures.append(f"{name}: {metric.get_signature()}")
    return values, "; ".join(signatures)


def _target(example: Example) -> str:
    if example.target is None:
        raise FenchelError(f"every example must have a target, got none for {example.source!r}")
    return example.target
