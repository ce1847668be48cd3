"""The one exception family of the library."""


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
