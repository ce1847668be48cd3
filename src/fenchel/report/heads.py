"""Attention heads of one or two models, as plain data for the interactive view of a report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fenchel.errors import FenchelError, unknown

ROUNDING = 1e-6  # how far a share may be above 1
SparseRows = Sequence[Mapping[int, float]]


class Kind(NamedTuple):
    """A kind of attention: its title, and which tokens of a sentence are its queries and keys."""

    title: str
    queries: str
    keys: str


KINDS = {
    "encoder": Kind("Encoder self-attention", "source", "source"),
    "context": Kind("Context attention", "target", "source"),
    "decoder": Kind("Decoder self-attention", "target", "target"),
}


class HeadKey(NamedTuple):
    """The place of a head in its model, equal to the plain tuple `(kind, layer, head)`."""

    kind: str
    layer: int
    head: int


@dataclass(frozen=True)
class HeadEntry:
    """What was measured of one attention head.

    Args:
        kind: `"encoder"` or `"decoder"` for self-attention, `"context"` for attention of a decoder to an
            encoder.
        layer: number of the layer, shown as it is.
        head: number of the head in its layer, shown as it is.
        density: mean share of weights that are not zero, in [0, 1].
        alpha: the α of its entmax, 1 for softmax; None if it is another map.
        roles: a score in [0, 1] for each role, such as `{"previous token": 0.93}`; None if the score
            could not be measured, such as interrogation on data without questions.

    >>> HeadEntry("encoder", 1, 4, density=0.08, alpha=1.91, roles={"current token": 0.93}).key
    HeadKey(kind='encoder', layer=1, head=4)
    """

    kind: str
    layer: int
    head: int
    density: float
    alpha: float | None = None
    roles: Mapping[str, float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_kind(self.kind)
        _check_share("density", self.density)
        if self.alpha is not None and not 0 < self.alpha < math.inf:
            raise FenchelError(f"alpha must be positive and finite, got {self.alpha}")
        for role, score in self.roles.items():
            if score is not None:
                _check_share(f"the score of the role {role!r}", score)

    @property
    def key(self) -> HeadKey:
        return HeadKey(self.kind, self.layer, self.head)


@dataclass(frozen=True)
class SentenceAttention:
    """The attention of all heads on one sentence.

    Args:
        source: tokens of the encoder; empty for a model without an encoder.
        target: tokens at the positions of the decoder; empty for a model without a decoder.
        weights: for each head, one row per query that maps the numbers of keys to weights (see
            `sparse_rows`). Keys that are left out have weight zero. Queries and keys are the source
            tokens in the encoder and the target tokens in the decoder; context attention has target
            tokens as queries and source tokens as keys.
        title: name of the sentence in the list; by default its tokens.

    >>> weights = {("encoder", 1, 1): [{0: 1.0}, {0: 0.25, 1: 0.75}]}
    >>> SentenceAttention(["guten", "Tag"], [], weights).name
    'guten Tag'
    """

    source: Sequence[str]
    target: Sequence[str]
    weights: Mapping[tuple[str, int, int], SparseRows]
    title: str = ""

    def __post_init__(self) -> None:
        for key, rows in self.weights.items():
            queries, keys = self.tokens(HeadKey(*key).kind)
            if len(rows) != len(queries):
                raise FenchelError(
                    f"the weights of {_name(key)} must have one row per query, "
                    f"got {len(rows)} rows and {len(queries)} tokens"
                )
            for row in rows:
                _check_row(key, row, len(keys))

    @property
    def name(self) -> str:
        return self.title or " ".join(self.source or self.target)

    def tokens(self, kind: str) -> tuple[Sequence[str], Sequence[str]]:
        """The queries and the keys of a kind of attention."""
        _check_kind(kind)
        return getattr(self, KINDS[kind].queries), getattr(self, KINDS[kind].keys)


@dataclass(frozen=True)
class Trajectories:
    """The α of heads during training.

    Args:
        x_title: what `x` counts, such as `"epoch"` or `"step"`.
        x: when α was recorded, in ascending order.
        alpha: for each head, one α per entry of `x`.
    """

    x_title: str
    x: Sequence[float]
    alpha: Mapping[tuple[str, int, int], Sequence[float]]

    def __post_init__(self) -> None:
        for key, values in self.alpha.items():
            if len(values) != len(self.x):
                raise FenchelError(
                    f"the trajectory of {_name(key)} must have {len(self.x)} values, "
                    f"got {len(values)}"
                )
            if not all(map(math.isfinite, values)):
                raise FenchelError(f"the trajectory of {_name(key)} must be finite")


@dataclass(frozen=True)
class ModelHeads:
    """The attention heads of a model.

    Args:
        name: name of the model.
        heads: its heads, in any order.
        sentences: examples of their attention.
        trajectories: their α during training, if it was recorded.
    """

    name: str
    heads: Sequence[HeadEntry]
    sentences: Sequence[SentenceAttention] = ()
    trajectories: Trajectories | None = None

    def __post_init__(self) -> None:
        counts = Counter(head.key for head in self.heads)
        repeated = [_name(key) for key, count in counts.items() if count > 1]
        if repeated:
            raise FenchelError(f"heads must be unique, got {repeated[0]} more than once")
        recorded = self.trajectories.alpha if self.trajectories else {}
        for name, keys in [
            *(("sentences", sentence.weights) for sentence in self.sentences),
            ("trajectories", recorded),
        ]:
            unknown = [_name(key) for key in keys if key not in counts]
            if unknown:
                raise FenchelError(
                    f"{name} must belong to heads of the model {self.name!r}, got {unknown[0]}"
                )


@dataclass(frozen=True)
class HeadsView:
    """An interactive view of attention heads: a block for a `Section`.

    A grid shows α, density or a role of every head. A click or the arrow keys open a head: its
    attention on a sentence as arcs and as a matrix, its roles, and its α during training. Two models are
    shown side by side, with the same head and sentence selected. Without JavaScript, the page shows a
    table of the heads.

    Weights are embedded with four decimals, and only those that are not zero. The attention of 72 heads
    on 10 sentences of 20 tokens takes about 0.3 MB if a tenth of the weights is not zero, and 1.1 MB if
    all of them are.

    Args:
        models: one or two models with the same sentences.

    >>> weights = {("encoder", 1, 1): [{0: 1.0}, {0: 0.25, 1: 0.75}]}
    >>> sentence = SentenceAttention(["guten", "Tag"], [], weights)
    >>> head = HeadEntry("encoder", 1, 1, density=0.75, alpha=1.5)
    >>> view = HeadsView([ModelHeads("1.5-entmax", [head], [sentence])])
    """

    models: Sequence[ModelHeads]

    def __post_init__(self) -> None:
        if len(self.models) not in (1, 2):
            raise FenchelError(f"models must be one or two, got {len(self.models)}")
        names = [model.name for model in self.models]
        if len(set(names)) < len(names):
            raise FenchelError(f"models must have different names, got {names[0]!r} twice")
        counts = [len(model.sentences) for model in self.models]
        if len(set(counts)) > 1:
            raise FenchelError(
                f"both models must have the same sentences, got {counts[0]} and {counts[1]}"
            )

    @property
    def is_empty(self) -> bool:
        return not any(model.heads for model in self.models)

    @property
    def roles(self) -> list[str]:
        """The roles of all heads, in the order in which they come."""
        heads = (head for model in self.models for head in model.heads)
        return list(dict.fromkeys(role for head in heads for role in head.roles))


def sparse_rows(weights: Iterable[Sequence[float]]) -> list[dict[int, float]]:
    """The weights that are not zero, one dictionary per row.

    >>> sparse_rows([[0.75, 0.0, 0.25], [0.0, 1.0, 0.0]])
    [{0: 0.75, 2: 0.25}, {1: 1.0}]
    """
    return [{key: weight for key, weight in enumerate(row) if weight != 0} for row in weights]


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise unknown("kind of attention", kind, KINDS)


def _check_row(key: tuple[str, int, int], row: Mapping[int, float], count: int) -> None:
    for number, weight in row.items():
        if not 0 <= number < count:
            raise FenchelError(
                f"the keys of {_name(key)} must be below {count}, the number of tokens, got {number}"
            )
        _check_share(f"the weights of {_name(key)}", weight)


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1 + ROUNDING:
        raise FenchelError(f"{name} must be between 0 and 1, got {value}")


def _name(key: tuple[str, int, int]) -> str:
    """A head in an error message.

    >>> _name(("encoder", 1, 4))
    'encoder layer 1, head 4'
    """
    kind, layer, head = key
    return f"{kind} layer {layer}, head {head}"
