"""Examples that occur twice: within a set, or in two sets that should share none."""

from __future__ import annotations

from collections.abc import Iterable

from fenchel.data.example import Example


def distinct(examples: Iterable[Example]) -> list[Example]:
    """Every example once, where it first occurs.

    >>> [example.source for example in distinct([Example("b"), Example("a"), Example("b")])]
    ['b', 'a']
    """
    return list(dict.fromkeys(examples))


def without(examples: Iterable[Example], others: Iterable[Example]) -> list[Example]:
    """The examples whose question (source, tags) is not also asked in `others`.

    >>> without([Example("a", "x"), Example("b", "y")], [Example("a", "z")])
    [Example(source='b', target='y', tags=(), group='')]
    """
    asked = {_question(other) for other in others}
    return [example for example in examples if _question(example) not in asked]


def _question(example: Example) -> tuple[str, tuple[str, ...]]:
    return example.source, example.tags
