"""How answers are written: for people, for pipes, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from fenchel.analysis.wording import SENTENCES, asked, proof, tags_of
from fenchel.data import Codec, Example
from fenchel.search import Answer


def as_object(example: Example, answer: Answer, codec: Codec) -> dict[str, Any]:
    """One example's answers as JSON holds them."""
    result: dict[str, Any] = {"source": example.source}
    if example.tags:
        result["tags"] = list(tags_of(example, codec))
    if example.target is not None:
        result["target"] = example.target
    result["answers"] = [
        {"text": codec.decode(h.tokens), "probability": h.probability, "finished": h.finished}
        for h in answer.hypotheses
    ]
    result |= {"single": answer.single, "complete": answer.complete, "certified": answer.certified}
    result["dropped"] = answer.dropped
    unknown = codec.unknown(example)
    return result | ({"unknown": unknown} if unknown else {})


def as_lines(example: Example, answer: Answer, codec: Codec, most: int) -> list[str]:
    """One example's answers between tabs: what was asked, the answer, its probability, the proof."""
    return [
        "\t".join(
            (asked(example, codec), codec.decode(h.tokens), f"{h.probability:.4g}", proof(answer))
        )
        for h in answer.hypotheses[:most]
    ]


def as_table(
    examples: Sequence[Example], answers: Sequence[Answer], codec: Codec, most: int
) -> Table:
    """Answers for a terminal: the best in bold, what was proven beside it."""
    result = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    result.add_column(overflow="fold", ratio=None)
    result.add_column(overflow="fold")
    result.add_column(justify="right", no_wrap=True)
    result.add_column(style="dim", no_wrap=True)
    for example, answer in zip(examples, answers, strict=True):
        for rank, hypothesis in enumerate(answer.hypotheses[:most]):
            first = rank == 0
            text = codec.decode(hypothesis.tokens) + ("" if hypothesis.finished else " …")
            result.add_row(
                Text(asked(example, codec)) if first else "",
                Text(text, style="bold" if first else ""),
                f"{hypothesis.probability:.3f}",
                SENTENCES[proof(answer)] if first else "",
            )
    return result
