"""Metrics of answers to examples with targets: accuracy, BLEU, chrF and ROUGE.

To add a metric, add its name to `METRICS` and compute it in `evaluate_answers`; the name must also be in
`SequenceTask.metric` and in `MEANINGS` of `task.py`.
"""

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

METRICS = {"accuracy": "% accuracy", "bleu": "BLEU", "rouge_l": "ROUGE-L"}
ROUGE_TYPES = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


@dataclass(frozen=True)
class AnswerMetrics:
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
        """The metrics as JSON, the main one first."""
        shares = {name: getattr(self, name) for name in ("single", "complete", "certified")}
        state: dict[str, Any] = {**self.values, **shares, "examples": self.examples}
        if self.groups:
            state["groups"] = self.groups
        if self.signature:
            state["signature"] = self.signature
        return state


def evaluate_answers(
    answers: Sequence[Answer], examples: Sequence[Example], codec: Codec, metric: str = "accuracy"
) -> AnswerMetrics:
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
        raise FenchelError(f"there must be one answer per example and at least one, got {got}")
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
    return AnswerMetrics(
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


def rouge(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L over the pairs, times 100, by the package rouge-score.

    Tokens are the runs of a–z and 0–9 in the lower-cased text; they are not stemmed.

    Reference: Lin (2004), *ROUGE: A Package for Automatic Evaluation of Summaries*.

    >>> round(rouge(["the cat sat"], ["the cat sat on the mat"])["rouge_l"], 2)
    66.67
    """
    scorers = require("rouge_score.rouge_scorer", extra="train")
    scorer = scorers.RougeScorer(list(ROUGE_TYPES.values()), use_stemmer=False)
    scores = [scorer.score(r, p) for p, r in zip(predictions, references, strict=True)]
    return {
        name: 100 * fmean(s[kind].fmeasure for s in scores) for name, kind in ROUGE_TYPES.items()
    }


def _target(example: Example) -> str:
    if example.target is None:
        raise FenchelError(f"every example must have a target, got none for {example.source!r}")
    return example.target
