"""JSON read back into the types that were written: checked recursively against their annotations."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fenchel.errors import FenchelError

T = TypeVar("T")
SHOWN = 60
_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    NoneType: "null",
    list: "a list",
}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str) -> Any:
    """The value of a JSON text; a `ValueError` says why there is none.

    >>> parse_json("[1, null]")
    [1, None]
    """
    try:
        value = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("half of a surrogate pair") from error
    return value


def from_json(declared: type[T], value: Any, where: str, path: str = "") -> T:
    """A value of the declared type, made from what `parse_json` returns.

    Types are those of JSON, `list`, `dict` with string keys, `Literal`, unions of these, and dataclasses,
    which are objects with their fields as keys; a field with a default may be missing. A float may be
    written as a whole number, and is never NaN.

    Args:
        declared: the type.
        value: the value.
        where: the name of the file, for errors.
        path: where in the file the value stands, for errors.

    >>> from_json(dict[str, float | None], {"clip": 5}, "config.json")
    {'clip': 5}
    >>> from_json(dict[str, float | None], {"clip": "5"}, "config.json")
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: config.json: clip must be a number or null, got '5'
    """
    for choice in _choices(declared):
        if _fits(choice, value):
            return _made(choice, value, where, path)
    expected = " or ".join(_described(choice) for choice in _choices(declared))
    raise FenchelError(f"{_place(where, path)} must be {expected}, got {shortened(value)}")


def shortened(value: object) -> str:
    """The representation of a value, cut off where it is long.

    >>> shortened("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"
    """
    try:
        text = repr(value[: SHOWN + 1] if isinstance(value, str) else value)
    except (RecursionError, ValueError):  # nested deeply, or a number of thousands of digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _made(declared: Any, value: Any, where: str, path: str) -> Any:
    if is_dataclass(declared):
        return _instance(declared, value, where, path)
    if get_origin(declared) is list:
        (part,) = get_args(declared)
        return [from_json(part, each, where, f"{path}[{k}]") for k, each in enumerate(value)]
    if get_origin(declared) is dict:
        part = get_args(declared)[1]
        return {key: from_json(part, each, where, _below(path, key)) for key, each in value.items()}
    return value


def _instance(declared: Any, value: dict[str, Any], where: str, path: str) -> Any:
    hints, place = _hints(declared), _place(where, path)
    for key in value:
        if key not in hints:
            raise FenchelError(f"{place} must not have the key {shortened(key)}")
    for field in fields(declared):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in value:
            raise FenchelError(f"{place} must have the key {field.name!r}")
    given = {
        key: from_json(hints[key], each, where, _below(path, key)) for key, each in value.items()
    }
    try:
        return declared(**given)
    except FenchelError as error:
        raise FenchelError(f"{place}: {error}") from error


def _fits(declared: Any, value: Any) -> bool:
    """Whether the value is of the type; what a container holds is not looked at."""
    origin = get_origin(declared) or declared
    if origin is Any:
        return True
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in get_args(declared))
    if origin is float:
        if type(value) is int:
            return abs(value) <= sys.float_info.max
        return type(value) is float and not math.isnan(value)
    return type(value) is (dict if is_dataclass(origin) else origin)


def _choices(declared: Any) -> Iterator[Any]:
    yield from get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)


def _described(declared: Any) -> str:
    origin = get_origin(declared) or declared
    if origin is Literal:
        return " or ".join(repr(each) for each in get_args(declared))
    return _NAMES.get(origin, "an object")


@cache
def _hints(declared: Any) -> dict[str, Any]:
    return get_type_hints(declared)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _place(where: str, path: str) -> str:
    return f"{where}: {path}" if path else where
