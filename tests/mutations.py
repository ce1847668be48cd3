"""Mutations of JSON documents and of bytes, for tests of everything that reads stored files.

A test that reads one file applies every mutation of `mutations`; a fuzz loop draws some with `mutated`
and `mutated_bytes`, which depend on nothing but the generator that they are given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from random import Random
from typing import Any

Place = tuple[str | int, ...]

DEEP = "<nested 100,000 levels deep>"  # `text_of` writes it as a list that is nested so deep
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    10**9,
    10**400,
    0.5,
    -0.5,
    1e30,
    math.nan,
    math.inf,
    "",
    "\0",
    "\ud800",
    "unknown",
    DEEP,
    [],
    {},
    [1],
    [[]],
    {"unknown": 1},
)


def mutations(document: Any) -> Iterator[tuple[Place, Any]]:
    """Every mutation of a single field: where it is, and the mutated document.

    Each value in the document, and the document itself, is replaced by each of `VALUES`. Each key and
    each entry is also removed, each container gets one more, each entry of a list is repeated, and each
    string is cut short.
    """
    for path, value in _nodes(document, ()):
        for other in (*VALUES, *_neighbours(value)):
            if type(other) is not type(value) or other != value:
                yield path, _replaced(document, path, other)


def mutated(document: Any, random: Random) -> Any:
    """The document with one to three mutations, drawn."""
    for _ in range(random.choice((1, 1, 2, 3))):
        path, value = random.choice(list(_nodes(document, ())))
        choices = [*VALUES, *_neighbours(value), random.randint(-(2**70), 2**70), random.random()]
        document = _replaced(document, path, random.choice(choices))
    return document


def mutated_bytes(content: bytes, random: Random) -> bytes:
    """The content with one to four mutations, drawn: bytes changed, removed, repeated or added."""
    for _ in range(random.randint(1, 4)):
        start = random.randint(0, len(content))
        end = min(len(content), start + random.choice((1, 2, 8, 100)))
        junk = random.choice(
            (b"\0", b"\n", b"\r\n", b"\t", b'"', b"{", b"\xff", random.randbytes(5))
        )
        inserted = random.choice((b"", junk, content[start:end] * 3, random.randbytes(end - start)))
        content = random.choice((content[:start], content[:start] + inserted + content[end:]))
    return content


def text_of(document: Any) -> str:
    """The document as JSON; numbers that are not finite are written as Python does."""
    nested = "[" * 100_000 + "]" * 100_000
    return json.dumps(document).replace(json.dumps(DEEP), nested)


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Refuse the process more than `size` bytes of further memory, where the system can (Linux)."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _nodes(value: Any, path: Place) -> Iterator[tuple[Place, Any]]:
    yield path, value
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _nodes(part, (*path, key))


def _neighbours(value: Any) -> Iterator[Any]:
    """Values of the same type that are close to this one."""
    if isinstance(value, dict):
        yield {**value, "added": 1}
        for key in value:
            yield {other: value[other] for other in value if other != key}
    elif isinstance(value, list):
        yield [*value, *value]
        for place, entry in enumerate(value):
            yield [*value[:place], *value[place + 1 :]]
            yield [*value[:place], entry, *value[place:]]
    elif isinstance(value, str):
        yield value[: len(value) // 2]
        yield value + value
    elif isinstance(value, int | float):
        yield value + 1
        yield -value
        yield str(value)


def _replaced(document: Any, path: Place, value: Any) -> Any:
    if not path:
        return value
    changed = deepcopy(document)
    owner = changed
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return changed
