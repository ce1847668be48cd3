"""`key=value` from a command line, put into nested frozen dataclasses with the types they declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fenchel.errors import FenchelError, rule, unknown

C = TypeVar("C")
TRUTH = {"true": True, "yes": True, "on": True, "1": True}
FALSEHOOD = {"false": False, "no": False, "off": False, "0": False}


def override(configuration: C, assignments: Iterable[str]) -> C:
    """The configuration with some fields changed.

    A key is a path (`model.hidden_size`) or, where only one part has such a field, its last name.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Model:
    ...     hidden_size: int = 300
    ...     alpha: float | str = 1.5
    >>> override(Model(), ["hidden_size=128", "alpha=learned"])
    Model(hidden_size=128, alpha='learned')
    """
    changes: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise rule("an override is key=value", expected="hidden_size=128", got=repr(assignment))
        *parts, name = _resolve(configuration, key.strip())
        owner, change = configuration, changes
        for part in parts:
            owner, change = getattr(owner, part), change.setdefault(part, {})
        change[name] = convert(text.strip(), get_type_hints(type(owner))[name], name)
    return _replaced(configuration, changes)


def settings(configuration: Any) -> dict[str, Any]:
    """Every field that can be overridden, by its path.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Search:
    ...     width: int = 5
    >>> settings(Search())
    {'width': 5}
    """
    return {".".join(path): value for path, value in _leaves(configuration, ())}


def _leaves(configuration: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in fields(configuration):
        value = getattr(configuration, field.name)
        here = (*path, field.name)
        if is_dataclass(value):
            yield from _leaves(value, here)
        else:
            yield here, value


def _resolve(configuration: Any, key: str) -> tuple[str, ...]:
    """The one path that ends with the key."""
    paths = [path for path, _ in _leaves(configuration, ())]
    wanted = tuple(key.split("."))
    matches = [path for path in paths if path[-len(wanted) :] == wanted]
    if wanted in matches:
        return wanted
    if len(matches) == 1:
        return matches[0]
    if matches:
        full = " or ".join(".".join(path) for path in matches)
        raise rule(f"the name {key!r} is ambiguous", expected=full, got=key)
    by_name = {path[-1] for path in paths} if len(wanted) == 1 else {".".join(p) for p in paths}
    raise unknown("setting", key, sorted(by_name))


def _replaced(configuration: Any, changes: dict[str, Any]) -> Any:
    """All changes at once, so that those which only fit together are checked together."""
    values = {
        name: _replaced(part, change) if is_dataclass(part) else change
        for name, change in changes.items()
        for part in [getattr(configuration, name)]
    }
    return replace(configuration, **values)


def convert(text: str, declared: Any, name: str) -> Any:
    """The text as a value of the declared type.

    >>> convert("none", float | None, "strength") is None
    True
    >>> convert("maybe", bool, "joint")
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: the setting joint has a type: expected true or false, got 'maybe'
    """
    value = _converted(text, declared)
    if isinstance(value, _Misfit):
        raise rule(f"the setting {name} has a type", expected=value.expected, got=repr(text))
    return value


class _Misfit:
    """What a text should have been; a value cannot be mistaken for it."""

    def __init__(self, expected: str) -> None:
        self.expected = expected


def _converted(text: str, declared: Any) -> Any:
    origin = get_origin(declared)
    if origin in (Union, UnionType):
        return _one_of(text, get_args(declared))
    if origin is Literal:
        choices = {str(choice): choice for choice in get_args(declared)}
        return choices.get(text, _Misfit(f"one of {', '.join(choices)}"))
    if origin is tuple:
        return _many(text, get_args(declared)[0])
    if declared is bool:
        known = {**TRUTH, **FALSEHOOD}
        return known.get(text.lower(), _Misfit("true or false"))
    if declared is NoneType:
        return None if text.lower() in ("none", "null") else _Misfit("none")
    if declared in (int, float):
        try:
            return declared(text)
        except ValueError:
            return _Misfit("a whole number" if declared is int else "a number")
    if declared is str:
        return text
    raise FenchelError(f"a setting of type {declared} cannot be written on the command line")


def _one_of(text: str, choices: tuple[Any, ...]) -> Any:
    """The first that fits; plain text comes last, for it fits everything."""
    attempts = [_converted(text, choice) for choice in sorted(choices, key=lambda c: c is str)]
    fitting = [value for value in attempts if not isinstance(value, _Misfit)]
    return fitting[0] if fitting else _Misfit(" or ".join(miss.expected for miss in attempts))


def _many(text: str, element: Any) -> Any:
    values = [_converted(part.strip(), element) for part in text.split(",") if part.strip()]
    misfits = [value for value in values if isinstance(value, _Misfit)]
    return _Misfit(f"{misfits[0].expected}, with commas between") if misfits else tuple(values)
