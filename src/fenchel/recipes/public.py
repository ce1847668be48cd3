"""A public data set in a folder, as a run remembers it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fenchel.data import Example, read_official


@dataclass(frozen=True)
class PublicSet:
    """Which set, where it lies, and how it is read.

    >>> PublicSet("multi30k", "data/multi30k").state()
    {'name': 'multi30k', 'folder': 'data/multi30k', 'options': {}}
    """

    name: str
    folder: str
    options: dict[str, str] = field(default_factory=dict)

    def splits(self) -> dict[str, list[Example]]:
        """The examples of "train", "dev" and "test"."""
        return read_official(self.name, Path(self.folder), **self.options)

    def state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)
