"""The lines of a text file, with errors that name the file and the line.

Files are UTF-8, with or without a byte order mark; lines end with "\\n" or "\\r\\n". A file whose
name ends with .xz or .gz is decompressed while it is read, and "-" is standard input.
"""

from __future__ import annotations

import gzip
import lzma
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePath

from fenchel.errors import FenchelError, rule

STANDARD_INPUT = "-"
UNPACK = {".xz": lzma.decompress, ".gz": gzip.decompress}


@dataclass(frozen=True)
class Lines:
    """All lines of the file `name`, without their ends; the first one has number 1."""

    name: str
    texts: list[str]

    def __len__(self) -> int:
        return len(self.texts)

    def error(self, number: int, statement: str, *, expected: object, got: object) -> FenchelError:
        """The error for a rule that line `number` breaks."""
        return rule(f"{self.name}, line {number}: {statement}", expected=expected, got=got)


def read_lines(path: str | PurePath) -> Lines:
    """Read the file at `path`; lines at the end that are blank do not count.

    A file with no line in it is an error: nothing can be trained, predicted or scored with it.
    """
    content = _bytes(path)
    name = "standard input" if is_standard_input(path) else str(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        got = f"the byte 0x{content[error.start]:02x} ({error.reason})"
        raise rule(
            f"{name}, line {number}: text is UTF-8", expected="UTF-8 bytes", got=got
        ) from error
    texts = [line.removesuffix("\r") for line in text.split("\n")]
    while texts and not texts[-1].strip():
        texts.pop()
    if not texts:
        raise rule(f"{name}: a data file has examples", expected="at least one line", got="none")
    return Lines(name, texts)


def is_standard_input(path: str | PurePath) -> bool:
    return str(path) == STANDARD_INPUT


def plain_name(path: str | PurePath) -> str:
    """The name of a file without folders and without the ending of its compression.

    >>> plain_name("task1/german-dev.tsv.xz")
    'german-dev.tsv'
    """
    name = PurePath(path)
    return name.stem if name.suffix in UNPACK else name.name


def plain_or_packed(path: Path) -> Path | None:
    """The file at `path`, or its compressed form beside it; None if neither is there."""
    candidates = (path, *(path.with_name(path.name + ending) for ending in UNPACK))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def count_lines(path: str | PurePath) -> int:
    """How many lines a file has, blank ones included."""
    content = _bytes(path)
    return content.count(b"\n") + (content[-1:] not in (b"", b"\n"))


def _bytes(path: str | PurePath) -> bytes:
    if is_standard_input(path):
        return sys.stdin.buffer.read()
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        got = "a folder" if isinstance(error, IsADirectoryError) else error.strerror
        raise rule(f"{path}: a data file can be read", expected="a file", got=got) from error
    unpack = UNPACK.get(PurePath(path).suffix)
    if unpack is None:
        return content
    try:
        return unpack(content)
    except (lzma.LZMAError, zlib.error, OSError, EOFError) as error:
        statement = f"{path}: a compressed file is whole"
        raise rule(statement, expected=f"{PurePath(path).suffix} data", got=error) from error
