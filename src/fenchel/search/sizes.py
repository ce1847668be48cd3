"""The one rule that all counts of a search follow."""

from __future__ import annotations

from fenchel.errors import rule


def positive(**sizes: int) -> None:
    """Refuse a count below 1, by its name.

    >>> positive(width=5, max_length=0)
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: max_length must be positive: expected an integer above 0, got 0
    """
    for name, value in sizes.items():
        if value < 1:
            raise rule(f"{name} must be positive", expected="an integer above 0", got=value)
