"""Typed settings: nested frozen dataclasses read from JSON, changed by `key=value`, and described.

The dataclasses are plain ones; pydantic validates and is imported when it is first needed.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import Field, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from fenchel.errors import FenchelError, unknown
from fenchel.extras import require
from fenchel.stored_json import parse_json, shortened

T = TypeVar("T")
ALL_SETTINGS = "All settings: fenchel list --settings RECIPE"
_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    tuple: "a list",
}


class Setting(NamedTuple):
    """A field that can be set: its path, its value, and the docstring below it."""

    path: str
    value: Any
    meaning: str


def from_json(declared: type[T], value: Any, where: str, path: str = "") -> T:
    """A value of the declared type, made from what `parse_json` returns.

    Types are those of JSON, `list`, `dict` with string keys, `Literal`, unions of these, and dataclasses,
    which are objects with their fields as keys; a field with a default may be missing. A float may be
    written as a whole number and must be finite.

    Args:
        declared: The type.
        value: The value.
        where: The name of the file, for errors.
        path: The place of the value in the file, for errors.

    >>> from_json(dict[str, float | None], {"clip": 5}, "config.json")
    {'clip': 5.0}
    >>> from_json(dict[str, float | None], {"clip": "5"}, "config.json")
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: config.json: clip must be a number or null, got '5'
    """
    try:
        # A strict dataclass is made from JSON text only: pydantic refuses a dict in its place.
        (made,) = _adapter(declared, strict=True).validate_json(json.dumps([value]))
    except require("pydantic", extra="train").ValidationError as invalid:
        raise _mismatch(declared, invalid.errors(), where, path) from invalid
    except (TypeError, ValueError, RecursionError) as error:
        raise FenchelError(f"{_place(where, path)} must be JSON, got {shortened(value)}") from error
    return made


def override(configuration: T, assignments: Iterable[str], source: str = "--set") -> T:
    """The configuration with some fields changed.

    A key is a path (`model.hidden_size`) or the end of exactly one path (`hidden_size`).

    Args:
        configuration: A dataclass, whose fields may be dataclasses.
        assignments: `key=value`, the value as text. Later ones win. All are applied at once, so that
            settings that only fit together can be changed together.
        source: Where the assignments come from, for errors.

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
        key, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not key:
            raise FenchelError(f"{source} must be key=value, got {assignment!r}")
        *parts, name = _resolve(configuration, key).split(".")
        owner, change = configuration, changes
        for part in parts:
            owner, change = getattr(owner, part), change.setdefault(part, {})
        change[name] = _parsed(text, get_type_hints(type(owner))[name], f"{source} {key}")
    return _replaced(configuration, changes)


def describe(configuration: Any) -> list[Setting]:
    """All settings, in the order of their fields; those derived from the data are left out.

    >>> from fenchel.training.config import TrainingConfig
    >>> describe(TrainingConfig())[1]
    Setting(path='batch_size', value=64, meaning='Number of examples per batch and process.')
    """
    return [
        Setting(path, getattr(owner, field.name), field_docstrings(type(owner)).get(field.name, ""))
        for path, owner, field in _leaves(configuration)
        if not field.metadata.get("derived")
    ]


def to_json(configuration: Any) -> dict[str, Any]:
    """The settings as nested dictionaries, from which `from_json` makes an equal configuration.

    Settings that are derived from the data are left out.
    """
    return {
        field.name: to_json(value) if is_dataclass(value) else value
        for field in fields(configuration)
        if not field.metadata.get("derived")
        for value in [getattr(configuration, field.name)]
    }


def load_settings(path: Path) -> dict[str, Any]:
    """The settings in a JSON or YAML file, nested or with dotted keys."""
    yaml = require("yaml", extra="train")
    try:
        text = path.read_text("utf8")
        is_yaml = path.suffix in (".yaml", ".yml")
        value = yaml.load(text, Loader=yaml.BaseLoader) if is_yaml else parse_json(text)
        if isinstance(value, dict):
            return value
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise FenchelError(f"{path} must be a JSON or YAML file, got: {reason}") from error
    raise FenchelError(f"{path} must hold settings by name, got {shortened(value)}")


@cache
def _adapter(declared: Any, **config: Any) -> Any:
    """Validates lists of the type, since a `TypeAdapter` of a dataclass alone accepts no options."""
    pydantic = require("pydantic", extra="train")
    config = {"extra": "forbid", "allow_inf_nan": False, **config}
    return pydantic.TypeAdapter(list[declared], config=pydantic.ConfigDict(**config))


def _mismatch(declared: Any, errors: list[Any], where: str, path: str) -> FenchelError:
    """The error for one of pydantic's: an unknown key if there is one, else the first."""
    error = min(errors, key=lambda each: each["type"] != "unexpected_keyword_argument")
    if error["type"] == "json_invalid":  # such as an integer or a nesting that is too large
        return FenchelError(f"{_place(where, path)} must be JSON, got: {error['msg']}")
    must = {"missing": "must", "unexpected_keyword_argument": "must not"}.get(error["type"])
    _, *location = error["loc"]
    key = location.pop() if must else None
    for step in location:
        inner, *others = (each for each in _choices(declared) if each is not NoneType)
        if others or not (is_dataclass(inner) or get_args(inner)):
            break  # pydantic adds the tried type of a union to the location
        declared = get_type_hints(inner)[step] if is_dataclass(inner) else get_args(inner)[-1]
        path = f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}".removeprefix(".")
    place = _place(where, path)
    if must:
        return FenchelError(f"{place} {must} have the key {shortened(key)}")
    if error["type"] == "value_error":
        return FenchelError(f"{place}: {error['ctx']['error']}")
    expected = _described(declared, none="null")
    return FenchelError(f"{place} must be {expected}, got {shortened(error['input'])}")


def _place(where: str, path: str) -> str:
    return f"{where}: {path}" if path else where


def _choices(declared: Any) -> tuple[Any, ...]:
    return get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)


def _described(declared: Any, *, none: str) -> str:
    """The values of a type in words, with `none` for None.

    >>> _described(float | Literal["auto"] | None, none="null")
    "a number, 'auto' or null"
    """
    words, choices = [], _choices(declared)
    for choice in choices:
        if choice is int and float in choices:
            continue
        origin = get_origin(choice) or choice
        if origin is Literal:
            words += map(repr, get_args(choice))
        else:
            words.append({**_NAMES, NoneType: none}.get(origin, "an object"))
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _leaves(configuration: Any, path: str = "") -> Iterator[tuple[str, Any, Field[Any]]]:
    """The path, the owner and the field of every value that is not a dataclass."""
    for field in fields(configuration):
        value = getattr(configuration, field.name)
        if is_dataclass(value):
            yield from _leaves(value, f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}", configuration, field


def _resolve(configuration: Any, key: str) -> str:
    """The one path that is the key or ends with it."""
    derived = {path: field.metadata.get("derived") for path, _, field in _leaves(configuration)}
    matches = [key] if key in derived else [p for p in derived if p.endswith(f".{key}")]
    if len(matches) > 1:
        raise FenchelError(f"setting {key!r} is ambiguous, use {' or '.join(matches)}")
    if not matches:
        known = (path for path in derived if not derived[path])
        names = known if "." in key else (path.rpartition(".")[2] for path in known)
        raise unknown("setting", key, names, ALL_SETTINGS)
    if derived[matches[0]]:
        raise FenchelError(f"{key} is derived from the data and cannot be set")
    return matches[0]


def _parsed(text: str, declared: Any, name: str) -> Any:
    """The text as a value of the first type in a union that accepts it; `str` comes last."""
    if NoneType in _choices(declared) and text.lower() in ("none", "null"):
        return None
    items = [part.strip() for part in text.split(",") if part.strip()]
    for choice in sorted(_choices(declared), key=lambda choice: choice is str):
        given = items if get_origin(choice) in (list, tuple) else text
        with suppress(require("pydantic", extra="train").ValidationError):
            return _adapter(choice).validate_python([given])[0]
    raise FenchelError(f"{name} must be {_described(declared, none='none')}, got {text!r}")


def _replaced(configuration: Any, changes: dict[str, Any]) -> Any:
    values = {
        name: _replaced(part, change) if is_dataclass(part) else change
        for name, change in changes.items()
        for part in [getattr(configuration, name)]
    }
    return replace(configuration, **values)


@cache
def field_docstrings(owner: type) -> dict[str, str]:
    """The docstrings below the fields of a dataclass and of its bases, each on one line."""
    found: dict[str, str] = {}
    for each in reversed(owner.__mro__[:-1]):
        if is_dataclass(each):
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            assert isinstance(node, ast.ClassDef)
            for field, after in pairwise(node.body):
                if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                    name, text = ast.unparse(field.target), ast.literal_eval(after.value)
                    found[name] = " ".join(text.split())
    return found


def flatten(value: Any, path: str = "") -> Iterator[str]:
    """Nested settings as assignments `key=value` for `override`."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from flatten(part, f"{path}.{key}".removeprefix("."))
    else:
        yield f"{path}={','.join(map(str, value)) if isinstance(value, list) else value}"
