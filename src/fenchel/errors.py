"""The exception of the library, and its message for unknown names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST_LISTED, SHOWN = 20, 10  # of longer lists of names, the first are shown


class FenchelError(ValueError):
    """Invalid arguments, settings or data; the message states what must hold, then what came."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> FenchelError:
    """The error for a name outside a list: the nearest known one and, in `hint`, where the list is.

    The list itself is part of the message only if there is neither.

    >>> print(unknown("recipe", "inflexion", ["inflection", "vqa"], "All recipes: fenchel list"))
    unknown recipe 'inflexion', did you mean 'inflection'? All recipes: fenchel list
    >>> print(unknown("recipe", "x", ["inflection", "vqa"]))
    unknown recipe 'x', must be one of inflection, vqa
    >>> print(unknown("column", "x", map(str, range(300))))
    unknown column 'x', must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … (300 in total)
    """
    names = {each.lower(): each for each in known}
    longer = sorted((each for each in names if each.startswith(name.lower())), key=len)
    near = longer or get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    message = f"unknown {kind} {name!r}"
    if near:
        message += f", did you mean {names[near[0]]!r}?"
    elif hint:
        message += "."
    else:
        shown = ", ".join([*names.values()][: len(names) if len(names) <= MOST_LISTED else SHOWN])
        shown += f", … ({len(names)} in total)" if len(names) > MOST_LISTED else ""
        message += f", must be one of {shown}" if names else ", there are none"
    return FenchelError(f"{message} {hint}".rstrip())
