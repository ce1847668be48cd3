"""The sequences of an answer as a prefix tree, and its drawing in a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from fenchel.search.hypotheses import Answer
from fenchel.search.labels import Label, Symbols, display_width, labels, percent

END, CUT = "■", "…"


@dataclass(frozen=True)
class Edge:
    """A token that leads from one node to another; None is the end of the sequence.

    `mass` is the total probability of the sequences through this edge, `probability` its share of
    the mass of the source node.
    """

    source: int
    target: int
    token: int | None
    probability: float
    mass: float


@dataclass(frozen=True)
class Lattice:
    """The prefix tree of an answer's hypotheses (figure 1 of Peters, Niculae and Martins, 2019).

    Nodes are prefixes, the empty one first; an edge with the token None leads to a finished
    sequence. The probability of an edge is the model's conditional probability if the answer is
    complete; otherwise it is relative to the answers that were found. The edges that leave a node
    are sorted by probability, the largest first.

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
        """Build the lattice of an answer of `beam_search`, `exact_search` or `support`.

        Repeated sequences, as in samples, are counted once.
        """
        nodes: list[tuple[int, ...]] = [()]
        masses = [0.0]
        targets: dict[tuple[int, int | None], int] = {}
        for hypothesis in dict.fromkeys(answer.hypotheses):
            node, path = 0, [*hypothesis.tokens, *([None] if hypothesis.finished else [])]
            masses[0] += hypothesis.probability
            for length, token in enumerate(path, start=1):
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

    @property
    def caption(self) -> str:
        """A note for drawings whose percentages at forks are not the model's own probabilities.

        Empty if the answer is complete, or if the lattice has no forks.
        """
        has_forks = len({edge.source for edge in self.edges}) < len(self.edges)
        if self.complete or not has_forks:
            return ""
        return "percentages at forks are shares of the answers found"

    def following(self) -> dict[int, list[Edge]]:
        """Return the edges that leave each node, the most probable first."""
        edges: dict[int, list[Edge]] = {node: [] for node in range(len(self.nodes))}
        for edge in self.edges:
            edges[edge.source].append(edge)
        return edges

    def text(self, symbols: Symbols, *, separator: str = "") -> str:
        """Draw the lattice for a terminal: one line per sequence, ending with its probability.

        The percentages at forks are the probabilities of the edges; if the answer is not complete,
        a last line says that they are relative to the answers found. ■ is the end of a sequence,
        … marks one that was cut at the length limit.

        Args:
            symbols: The text of each token: a function, or the list of all symbols.
            separator: Text between two tokens: "" for characters, " " for words.
        """
        start = Edge(0, 0, None, 1.0, 1.0)
        lines = _lines(self.following(), [], start, labels(symbols), separator)
        return "\n".join([*lines, f"({self.caption})"] if self.caption else lines)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _lines(
    following: dict[int, list[Edge]], chain: list[str], edge: Edge, label: Label, separator: str
) -> list[str]:
    """Draw what follows an edge; `chain` holds the symbols since the last fork."""
    while len(following[edge.target]) == 1:
        (edge,) = following[edge.target]
        if edge.token is not None:
            chain.append(label(edge.token))
    word = separator.join(chain)
    forks = following[edge.target]
    if not forks:
        return [f"{word} {END if edge.token is None else CUT} {percent(edge.mass)}".lstrip()]
    head = f"{word} " if word else ""
    indent = " " * display_width(head)
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
