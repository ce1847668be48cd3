"""The public data of a table: which folder holds them, and their examples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fenchel.data.lines import plain_or_packed
from fenchel.data.official import OfficialSet, base_folder, named
from fenchel.errors import rule
from fenchel.recipes.public import PublicSet
from fenchel.recipes.reading import Splits
from fenchel.recipes.reproductions.table import PaperTable

QUICK_EXAMPLES = 24


@dataclass(frozen=True)
class Source:
    """A public set as a table reads it; `quick` is a few examples of each part."""

    dataset: str
    folder: Path
    options: tuple[tuple[str, str], ...] = ()
    quick: bool = False

    @classmethod
    def of(cls, table: PaperTable, data: Path, *, quick: bool = False) -> Source:
        """The table's set, somewhere in the folder `data`."""
        folder = located(table.dataset, data)
        return cls(table.dataset, folder, tuple(sorted(table.options.items())), quick)

    @property
    def public(self) -> PublicSet:
        """The set, as a run remembers it."""
        return PublicSet(self.dataset, str(self.folder.resolve()), dict(self.options))

    def splits(self) -> Splits:
        """The examples; those of the last sets read are remembered."""
        return _read(self)


def located(dataset: str, data: Path) -> Path:
    """The folder with most files of a set: `data` itself or one inside it, whatever it is called."""
    official = named(dataset)
    inside = sorted(path for path in data.iterdir() if path.is_dir()) if data.is_dir() else []
    held = {folder: _files(official, folder) for folder in (data / dataset, data, *inside)}
    folder = max(held, key=lambda each: held[each])
    if not held[folder]:
        expected = f"{dataset}, unpacked, in it or in a folder inside it ({official.url})"
        raise rule(f"{data} holds the data", expected=expected, got="no file of it")
    return folder


def _files(data: OfficialSet, folder: Path) -> int:
    if not folder.is_dir():
        return 0
    base = base_folder(data, folder)
    return sum(plain_or_packed(base / path) is not None for path in data.lines)


@lru_cache(maxsize=2)
def _read(source: Source) -> Splits:
    parts = source.public.splits()
    sizes = ", ".join(f"{len(examples)} {split}" for split, examples in parts.items())
    notes = [f"{source.dataset}: {sizes} examples"]
    if source.quick:
        parts = {split: examples[:QUICK_EXAMPLES] for split, examples in parts.items()}
        notes.append(f"quick: {QUICK_EXAMPLES} of each")
    return Splits(**parts, notes=tuple(notes))
