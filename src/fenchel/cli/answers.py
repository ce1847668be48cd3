"""How answers are written: for people, for pipes, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from fenchel.analysis.wording import SENTENCES, asked, proof
from fenchel.cli.console import plain
from fenchel.data import Codec, Example
from fenchel.search import Answer

BREAKS = str.maketrans("\t\n\r", "   ")
WIDEST_SENTENCE = max(map(len, SENTENCES.values()))
BESIDE = 11  # columns of the probability and of the gaps


def as_object(example: Example, answer: Answer, codec: Codec) -> dict[str, Any]:
    """One example's answers as JSON holds them."""
    result: dict[str, Any] = {"source": example.source}
    if example.tags:
        result["tags"] = list(codec.tags(example))
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
    question = asked(example, codec).translate(BREAKS)
    return [
        "\t".join(
            (
                question,
                codec.decode(hypothesis.tokens).translate(BREAKS),
                f"{hypothesis.probability:.4g}",
                proof(answer, rank),
            )
        )
        for rank, hypothesis in enumerate(answer.hypotheses[:most])
    ]


def as_table(
    examples: Sequence[Example], answers: Sequence[Answer], codec: Codec, most: int, width: int
) -> Table:
    """Answers for a terminal: the best in bold, what was proven beside it.

    Where `width` columns are too few for all, the proof is one word instead of a sentence.
    """
    rows = []
    for example, answer in zip(examples, answers, strict=True):
        for rank, hypothesis in enumerate(answer.hypotheses[:most]):
            question = "" if rank else asked(example, codec)
            text = codec.decode(hypothesis.tokens) + ("" if hypothesis.finished else " …")
            word = "" if rank else proof(answer)
            cells = plain(question), plain(text, "bold" if word else "")
            rows.append((*cells, f"{hypothesis.probability:.3f}", word))
    texts = sum(max(row[column].cell_len for row in rows) for column in (0, 1))
    brief = texts + BESIDE + WIDEST_SENTENCE > width
    result = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    result.add_column(overflow="fold")
    result.add_column(overflow="fold")
    result.add_column(justify="right", no_wrap=True)
    result.add_column(style="dim", no_wrap=True)
    for question, text, probability, word in rows:
        told = word if brief else SENTENCES.get(word, "")
        result.add_row(question, text, probability, told)
    return result
