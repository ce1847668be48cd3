"""Answers of a search as text, as lines with tabs, as JSON, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fenchel.printable import one_line, without_breaks
from fenchel.search import Answer
from fenchel.tasks.search_options import PROOFS, proof
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.example import Example

if TYPE_CHECKING:
    from rich.table import Table

EMPTY = "(empty)"
WIDEST_PROOF = max(map(len, PROOFS.values()))
OTHER_COLUMNS = 11  # width of the probability and of the gaps


def input_text(example: Example, codec: Codec) -> str:
    """The input of an example as a person would write it.

    >>> codec = Codec.fit([Example("draw", "drew", ("V", "PST"))])
    >>> input_text(Example("walk", None, ("english", "V", "PST"), "english"), codec)
    'walk V;PST'
    """
    return " ".join(part for part in (example.source, ";".join(codec.tags(example))) if part)


def answer_text(tokens: Sequence[int], codec: Codec) -> str:
    """The text of an answer, "(empty)" if there is none."""
    return codec.decode(tokens) or EMPTY


def as_json(example: Example, answer: Answer, codec: Codec) -> dict[str, Any]:
    """The answers to an example as a JSON object."""
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
    """The answers to an example as lines with tabs: input, answer, probability, proof."""
    source = without_breaks(input_text(example, codec))
    return [
        "\t".join(
            (
                source,
                without_breaks(answer_text(hypothesis.tokens, codec)),
                f"{hypothesis.probability:.4g}",
                proof(answer, rank),
            )
        )
        for rank, hypothesis in enumerate(answer.hypotheses[:most])
    ]


def as_table(
    examples: Sequence[Example], answers: Sequence[Answer], codec: Codec, most: int, width: int
) -> Table:
    """Answers for a terminal, the best in bold, with what was proven of it.

    If `width` columns are too few, the proof is one word instead of a sentence.
    """
    from rich.table import Table
    from rich.text import Text

    rows = []
    for example, answer in zip(examples, answers, strict=True):
        for rank, hypothesis in enumerate(answer.hypotheses[:most]):
            source = "" if rank else input_text(example, codec)
            text = answer_text(hypothesis.tokens, codec) + ("" if hypothesis.finished else " …")
            word = "" if rank else proof(answer)
            cells = Text(one_line(source)), Text(one_line(text), "bold" if word else "")
            rows.append((*cells, f"{hypothesis.probability:.3f}", word))
    texts = sum(max(row[column].cell_len for row in rows) for column in (0, 1))
    brief = texts + OTHER_COLUMNS + WIDEST_PROOF > width
    result = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    result.add_column(overflow="fold")
    result.add_column(overflow="fold")
    result.add_column(justify="right", no_wrap=True)
    result.add_column(style="dim", no_wrap=True)
    for source, text, probability, word in rows:
        result.add_row(source, text, probability, word if brief else PROOFS.get(word, ""))
    return result
