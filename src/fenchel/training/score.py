"""The figures of a set of answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from fenchel.data.codec import Codec
from fenchel.data.example import Example
from fenchel.errors import rule
from fenchel.extras import require
from fenchel.search import Answer
from fenchel.training.rouge import rouge

METRICS = ("accuracy", "bleu", "rouge_l")


@dataclass(frozen=True)
class Scores:
    """What a set of answers is worth; shares and accuracies are in percent.

    Attributes:
        metric: the name of the main figure.
        figures: the main figure and its companions.
        groups: accuracy of every group (language), for "accuracy".
        single, complete, certified: shares of answers that are the only sequence of positive
            probability, that list all of them, and that are proven to be the most probable.
        signature: says exactly how BLEU and chrF were computed.
    """

    metric: str
    figures: dict[str, float]
    single: float
    complete: float
    certified: float
    examples: int
    groups: dict[str, float] = field(default_factory=dict)
    signature: str = ""

    @property
    def main(self) -> float:
        """The main figure."""
        return self.figures[self.metric]

    def state(self) -> dict[str, Any]:
        """As JSON can hold it, the main figure on top."""
        shares = {name: getattr(self, name) for name in ("single", "complete", "certified")}
        state: dict[str, Any] = {**self.figures, **shares, "examples": self.examples}
        if self.groups:
            state["groups"] = self.groups
        if self.signature:
            state["signature"] = self.signature
        return state


def score(
    answers: Sequence[Answer], examples: Sequence[Example], codec: Codec, metric: str = "accuracy"
) -> Scores:
    """Compare the best hypothesis of every answer with the example's target, spelled as by the codec.

    Args:
        answers: of `predict`, in the order of the examples.
        examples: with targets.
        codec: of the model.
        metric: "accuracy" (whole sequences, averaged over the groups), "bleu" (with chrF) or
            "rouge_l" (with ROUGE-1 and ROUGE-2).
    """
    if metric not in METRICS:
        raise rule("metric must be known", expected=f"one of {METRICS}", got=repr(metric))
    if not examples or len(answers) != len(examples):
        expected, got = "one an example, at least one", f"{len(answers)} for {len(examples)}"
        raise rule("answers belong to examples", expected=expected, got=got)
    texts = [codec.decode(answer.best.tokens) for answer in answers]
    targets = [codec.normalized(_target(example)) for example in examples]
    groups, signature = {}, ""
    if metric == "accuracy":
        groups = accuracy_by_group(texts, targets, [example.group for example in examples])
        figures = {"accuracy": fmean(groups.values())}
    elif metric == "bleu":
        figures, signature = bleu(texts, targets)
    else:
        figures = rouge(texts, targets)
    return Scores(
        metric, figures, **shares(answers), examples=len(examples), groups=groups,
        signature=signature,
    )  # fmt: skip


def shares(answers: Sequence[Answer]) -> dict[str, float]:
    """The shares of `single`, `complete` and `certified` answers, in percent."""
    names = ("single", "complete", "certified")
    return {name: 100 * fmean(getattr(answer, name) for answer in answers) for name in names}


def accuracy_by_group(
    texts: Sequence[str], targets: Sequence[str], groups: Sequence[str]
) -> dict[str, float]:
    """The percentage of texts that are the target exactly, for every group.

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
    figures, signatures = {}, []
    for name, metric in (("bleu", metrics.BLEU()), ("chrf", metrics.CHRF())):
        figures[name] = metric.corpus_score(list(texts), [list(targets)]).score
        signatures.append(f"{name}: {metric.get_signature()}")
    return figures, "; ".join(signatures)


def _target(example: Example) -> str:
    if example.target is None:
        raise rule("an answer is compared", expected="a target", got=f"none for {example.source!r}")
    return example.target
