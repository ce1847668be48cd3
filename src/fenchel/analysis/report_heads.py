"""Converts a table of heads to the data of the interactive view in a report."""

from __future__ import annotations

from collections.abc import Sequence

from fenchel.analysis.alphas import alpha_trajectories
from fenchel.analysis.attention import Kind
from fenchel.analysis.examples import ExampleSentence, Head
from fenchel.analysis.head_table import HeadTable
from fenchel.analysis.roles import ROLES
from fenchel.report import HeadEntry, Log, ModelHeads, SentenceAttention, Trajectories
from fenchel.report.heads import KINDS


def model_heads(name: str, table: HeadTable, log: Log | None = None) -> ModelHeads:
    """The heads of a model and its attention on the examples of the table, for a `HeadsView`.

    Self-attention whose kind is not known is shown as that of a decoder if it sees no later tokens, and
    as that of an encoder otherwise.

    Args:
        name: The name of the model in the view.
        table: What `fenchel.analysis.heads` measured, with `examples`.
        log: The columns of the log of its training, for the course of α.
    """
    records = table.records()
    sees_later = any(each["next_token"] is not None for each in records if each["kind"] == "self")
    shown: dict[Kind, Kind] = {"self": "encoder" if sees_later else "decoder"}
    entries = []
    for record in records:
        kind: Kind = record["kind"]
        place = shown.get(kind, kind), record["layer"], record["head"]
        roles = {role.replace("_", " "): record[role] for role in ROLES}
        entries.append(HeadEntry(*place, record["density"], record["alpha"], roles))
    sentences = [_sentence(sentence, shown) for sentence in table.examples]
    return ModelHeads(name, entries, sentences, _trajectories(log or {}, entries))


def _sentence(sentence: ExampleSentence, shown: dict[Kind, Kind]) -> SentenceAttention:
    weights, tokens = {}, {"source": sentence.source or (), "target": sentence.target or ()}
    for head, matrix in sentence.weights.items():
        kind = shown.get(head.kind, head.kind)
        for side, count in zip(KINDS[kind][1:], matrix.shape, strict=True):
            if len(tokens[side]) != count:  # tokens that were not given, or on the other side
                tokens[side] = _tokens(sentence, count)
        weights[Head(kind, head.layer, head.head)] = sentence.rows(*head)
    return SentenceAttention(tokens["source"], tokens["target"], weights)


def _tokens(sentence: ExampleSentence, count: int) -> Sequence[str]:
    """The tokens of a model with a single sequence; their numbers if they are not known."""
    for tokens in (sentence.source, sentence.target):
        if tokens is not None and len(tokens) == count:
            return tokens
    return [str(place) for place in range(count)]


def _trajectories(log: Log, entries: Sequence[HeadEntry]) -> Trajectories | None:
    keys = {f"{entry.kind}.{entry.layer}.{entry.head}": entry.key for entry in entries}
    known = {keys[name]: points for name, points in alpha_trajectories(log).items() if name in keys}
    if not known:
        return None
    x = [epoch for epoch, _ in max(known.values(), key=len)]
    alpha: dict[tuple[str, int, int], list[float]] = {
        key: [value for _, value in points]
        for key, points in known.items()
        if len(points) == len(x)
    }
    return Trajectories("epoch", x, alpha)
