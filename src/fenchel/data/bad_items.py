"""Bad items of data files: an error, or skipped and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from fenchel.errors import FenchelError

T = TypeVar("T")

SHOWN = 3  # items that a summary names


@dataclass
class BadItems:
    """Lines, or other items of files, that cannot be used: the first is an error, or all are skipped.

    Readers pass the error of every bad item to `add`, and go on with the next one if it returns.

    >>> bad = BadItems(skip=True)
    >>> bad.add(FenchelError("words.tsv:7: tags must not be blank, got ''"))
    >>> bad.summary
    "1 bad item was skipped: words.tsv:7: tags must not be blank, got ''"

    Attributes:
        skip: Whether they are skipped.
        count: The number of items skipped.
        messages: The messages of the first of them, which name the file and the line.
    """

    skip: bool = False
    count: int = 0
    messages: list[str] = field(default_factory=list)

    def add(self, error: FenchelError) -> None:
        """Count the error or, by default, raise it."""
        if not self.skip:
            raise error
        self.count += 1
        if len(self.messages) < SHOWN:
            self.messages.append(str(error))

    def usable(self, items: Iterable[T], check: Callable[[T], object]) -> list[T]:
        """The items for which `check` raises no error; the errors of others are added."""
        found = []
        for item in items:
            try:
                check(item)
            except FenchelError as error:
                self.add(error)
            else:
                found.append(item)
        return found

    @property
    def summary(self) -> str:
        """A sentence about the items skipped, "" if there are none."""
        if not self.count:
            return ""
        items = "1 bad item was" if self.count == 1 else f"{self.count} bad items were"
        more = "" if self.count <= SHOWN else f"; and {self.count - SHOWN} more"
        return f"{items} skipped: {'; '.join(self.messages)}{more}"
