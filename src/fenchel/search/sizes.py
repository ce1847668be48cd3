"""The one rule that all counts of a search follow."""

from __future__ import annotations

from fenchel.errors import rule


def positive(**sizes: int) -> None:
    """Refuse what is not a count of at least 1, by its name.

    >>> positive(width=5, max_length=0)
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: max_length must be positive: expected an integer above 0, got 0
    """
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise rule(f"{name} must be positive", expected="an integer above 0", got=repr(value))
