"""What the settings of a recipe mean, as their classes say it under "Args:"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from inspect import getdoc
from typing import Any

_ENTRY = re.compile(r" {4}(\w+(?:, \w+)*): (.+)")
_MORE = re.compile(r" {8}(\S.*)")


def meanings(configuration: Any) -> dict[str, str]:
    """What every field that can be overridden means, by its path; those that are not said are left out.

    >>> from fenchel.recipes import recipe
    >>> meanings(recipe("inflection"))["training.learning_rate"]
    'of Adam.'
    """
    return dict(_explained(configuration, ""))


def arguments(documentation: str) -> dict[str, str]:
    """The text of every argument that a docstring has under "Args:".

    >>> arguments("Adds.\\n\\nArgs:\\n    left, right: numbers,\\n        of any kind.\\n\\nMore.")
    {'left': 'numbers, of any kind.', 'right': 'numbers, of any kind.'}
    """
    found: dict[str, str] = {}
    names: list[str] = []
    for line in documentation.partition("Args:\n")[2].splitlines():
        if entry := _ENTRY.fullmatch(line):
            names = entry[1].split(", ")
            found |= dict.fromkeys(names, entry[2])
        elif more := _MORE.fullmatch(line):
            found |= {name: f"{found[name]} {more[1]}" for name in names}
        else:
            break
    return found


def _explained(configuration: Any, path: str) -> Iterator[tuple[str, str]]:
    said = arguments(getdoc(type(configuration)) or "")
    for field in fields(configuration):
        value = getattr(configuration, field.name)
        if is_dataclass(value):
            yield from _explained(value, f"{path}{field.name}.")
        elif field.name in said:
            yield f"{path}{field.name}", said[field.name]
