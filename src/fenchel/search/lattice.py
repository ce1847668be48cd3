"""The sequences of an answer as one graph: what they share is drawn once."""

from __future__ import annotations

from dataclasses import dataclass

from fenchel.search.answers import Answer
from fenchel.search.labels import Label, Symbols, columns, labels, percent

END, CUT = "■", "…"


@dataclass(frozen=True)
class Edge:
    """A token (None: the end of the sequence) that leads from one node to another.

    `probability` is conditional on the prefix, `mass` that of everything that goes this way.
    """

    source: int
    target: int
    token: int | None
    probability: float
    mass: float


@dataclass(frozen=True)
class Lattice:
    """The prefix tree of an answer's hypotheses (figure 1 of Peters, Niculae and Martins, 2019).

    Nodes are prefixes, the empty one first; behind the edge with the token None, whole sequences.
    The probability of an edge is the share of its prefix's probability that goes this way: the
    model's own conditional probability if the answer is complete, otherwise relative to the
    sequences that are known. The edges of a node come with the most probable first.

    >>> from fenchel.search import Answer, Hypothesis
    >>> ways = (((0, 1), -0.288), ((0, 2, 3), -1.386))
    >>> answer = Answer.of([Hypothesis.of(*way, finished=True) for way in ways], float("-inf"))
    >>> lattice = Lattice.of(answer)
    >>> print(lattice.text("abcd"))
    a ─┬─ 75.0 % ─ b ■ 75.0 %
       └─ 25.0 % ─ cd ■ 25.0 %
    >>> lattice.nodes
    ((), (0,), (0, 1), (0, 1), (0, 2), (0, 2, 3), (0, 2, 3))
    """

    nodes: tuple[tuple[int, ...], ...]
    edges: tuple[Edge, ...]
    complete: bool
    dropped: float

    @classmethod
    def of(cls, answer: Answer) -> Lattice:
        """The lattice of an answer, as `beam_search`, `exact_search` or `support` return it.

        A sequence that is there twice, as samples can be, counts once.
        """
        nodes: list[tuple[int, ...]] = [()]
        masses = [0.0]
        targets: dict[tuple[int, int | None], int] = {}
        for hypothesis in dict.fromkeys(answer.hypotheses):
            node, way = 0, [*hypothesis.tokens, *([None] if hypothesis.finished else [])]
            masses[0] += hypothesis.probability
            for length, token in enumerate(way, start=1):
                if (node, token) not in targets:
                    targets[node, token] = len(nodes)
                    nodes.append(hypothesis.tokens[:length])
                    masses.append(0.0)
                node = targets[node, token]
                masses[node] += hypothesis.probability
        edges = [
            Edge(source, target, token, _share(masses[target], masses[source]), masses[target])
            for (source, token), target in targets.items()
        ]
        edges.sort(key=lambda edge: (edge.source, -edge.mass))
        return cls(tuple(nodes), tuple(edges), answer.complete, answer.dropped)

    def following(self) -> dict[int, list[Edge]]:
        """The edges that leave each node, most probable first; none leave the end of a sequence."""
        edges: dict[int, list[Edge]] = {node: [] for node in range(len(self.nodes))}
        for edge in self.edges:
            edges[edge.source].append(edge)
        return edges

    def text(self, symbols: Symbols, *, separator: str = "") -> str:
        """The lattice for a terminal: a line a sequence, with its probability at the end.

        ■ ends a sequence and … marks one that was cut; the percentages at a fork are conditional.
        `symbols` maps tokens to text (a function, or all of them in a list); `separator` stands
        between two tokens: "" for characters, " " for words.
        """
        start = Edge(0, 0, None, 1.0, 1.0)
        return "\n".join(_lines(self.following(), [], start, labels(symbols), separator))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _lines(
    following: dict[int, list[Edge]], chain: list[str], edge: Edge, label: Label, separator: str
) -> list[str]:
    """What comes after an edge; `chain` are the symbols since the last fork."""
    while len(following[edge.target]) == 1:
        (edge,) = following[edge.target]
        if edge.token is not None:
            chain.append(label(edge.token))
    word = separator.join(chain)
    forks = following[edge.target]
    if not forks:
        return [f"{word} {END if edge.token is None else CUT} {percent(edge.mass)}".lstrip()]
    head = f"{word} " if word else ""
    indent = " " * columns(head)
    shares = [percent(fork.probability) for fork in forks]
    widest = max(map(len, shares))
    lines: list[str] = []
    for fork, share in zip(forks, shares, strict=True):
        corner = "─┬─" if not lines else " └─" if fork is forks[-1] else " ├─"
        below = "   " if fork is forks[-1] else " │ "
        stem = [] if fork.token is None else [label(fork.token)]
        first, *rest = _lines(following, stem, fork, label, separator)
        dash = "─ " if stem else ""
        lines.append(f"{indent if lines else head}{corner} {share:>{widest}} {dash}{first}")
        lines += [f"{indent}{below} {' ' * (widest + 1 + len(dash))}{line}" for line in rest]
    return lines
