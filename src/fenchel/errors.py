"""The one exception family of the library."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class FenchelError(ValueError):
    """A rule of the library was broken; the message states the rule, what was expected, what came."""


def rule(statement: str, *, expected: object, got: object) -> FenchelError:
    """The error for a broken rule, in the one form that every message has.

    >>> raise rule("alpha must be positive", expected="a number above 0", got=-1.0)
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: alpha must be positive: expected a number above 0, got -1.0
    """
    return FenchelError(f"{statement}: expected {expected}, got {got}")


def unknown(kind: str, name: str, known: Iterable[str]) -> FenchelError:
    """The error for a name outside a list: the nearest known one if there is one, and the list.

    >>> print(unknown("recipe", "inflexion", ["inflection", "vqa"]))
    there is no such recipe: expected 'inflection' (the nearest) or one of vqa, got 'inflexion'
    """
    names = list(known)
    lowered = {each.lower(): each for each in names}
    near = [lowered[each] for each in get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)]
    others = ", ".join(each for each in names if each not in near)
    choices = [f"{each!r} (the nearest)" for each in near] + (
        [f"one of {others}"] if others else []
    )
    expected = " or ".join(choices) or "nothing: none are defined"
    return rule(f"there is no such {kind}", expected=expected, got=repr(name))
