"""The rules that the counts and the marks of a search follow."""

from __future__ import annotations

from numbers import Integral

from fenchel.errors import rule


def positive(**sizes: int) -> None:
    """Refuse what is not a count of at least 1, by its name.

    >>> positive(width=5, max_length=0)
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: max_length must be positive: expected an integer above 0, got 0
    """
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise rule(f"{name} must be positive", expected="an integer above 0", got=repr(value))


def marks(**tokens: int) -> None:
    """Refuse what cannot be a token, by its name.

    >>> marks(bos=1, eos=-2)
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: eos is a token: expected an integer of at least 0, got -2
    """
    for name, value in tokens.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
            expected = "an integer of at least 0"
            raise rule(f"{name} is a token", expected=expected, got=repr(value))
