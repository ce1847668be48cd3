"""The lines of a text file, read one at a time, with errors that name the file and the line.

Files are UTF-8, with or without a byte order mark; lines end with "\\n" or "\\r\\n". A file whose
name ends with .xz or .gz is decompressed while it is read, and "-" is standard input.
"""

from __future__ import annotations

import gzip
import lzma
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from fenchel.errors import FenchelError, rule

STANDARD_INPUT = "-"
LONGEST_LINE = 1_000_000  # characters
MOST_BYTES = 4 * LONGEST_LINE  # no character has more than four bytes in UTF-8
UNPACK: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}


class Lines:
    """The lines of the file `name`: pairs of a number, from 1 on, and a text without its end.

    They can be iterated over once, and are read meanwhile. Blank lines at the end do not count.
    """

    def __init__(self, name: str, lines: Iterator[tuple[int, str]]) -> None:
        self.name = name
        first = next(lines, None)
        if first is None:
            raise FenchelError(f"{name} must have at least one line that is not blank")
        self.first = first[1]
        self._lines = chain([first], lines)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self._lines

    def error(self, number: int, statement: str, *, expected: object, got: object) -> FenchelError:
        """The error for a rule that line `number` breaks."""
        return rule(f"{self.name}, line {number}: {statement}", expected=expected, got=got)


def read_lines(path: str | PurePath) -> Lines:
    """Read the file at `path`.

    A file with no line in it is an error: nothing can be trained, predicted or scored with it. So is a
    line of more than a million characters, which is refused before all of it is read.
    """
    name = "standard input" if is_standard_input(path) else str(path)
    return Lines(name, _without_blank_end(_texts(path, name)))


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
    count, last = 0, b"\n"
    with _opened(path) as file:
        while chunk := file.read(2**20):
            count, last = count + chunk.count(b"\n"), chunk[-1:]
    return count + (last != b"\n")


def _without_blank_end(texts: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines, up to the last that is not blank.

    Blank lines are counted rather than kept, because there may be any number of them.
    """
    blank = 0
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            blank += 1
            continue
        yield from ((before, "") for before in range(number - blank, number))
        blank = 0
        yield number, text


def _texts(path: str | PurePath, name: str) -> Iterator[str]:
    """The lines of a file as text, without their ends."""
    limit = len(BOM_UTF8) + MOST_BYTES + len(b"\r\n")
    with _opened(path) as file:
        number = 0
        while line := file.readline(limit):
            number += 1
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
            yield _text(line, name, number)


def _text(line: bytes, name: str, number: int) -> str:
    try:
        text = line.decode() if len(line) <= MOST_BYTES else None
    except UnicodeDecodeError as error:
        got = f"the byte 0x{line[error.start]:02x} ({error.reason})"
        raise FenchelError(f"{name}, line {number}: text must be UTF-8, got {got}") from error
    if text is None or len(text) > LONGEST_LINE:
        limit = f"must have at most {LONGEST_LINE:,} characters"
        raise FenchelError(f"{name}, line {number} {limit}, got more")
    if "\0" in text:
        raise FenchelError(f"{name}, line {number}: text must not contain NUL characters")
    return text


@contextmanager
def _opened(path: str | PurePath) -> Iterator[BinaryIO]:
    """The file at `path` with its content as bytes; errors in reading it name the file."""
    if is_standard_input(path):
        yield sys.stdin.buffer
        return
    ending = PurePath(path).suffix
    try:
        with UNPACK.get(ending, open)(path, "rb") as file:
            yield file
    except FenchelError:
        raise
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise FenchelError(f"{path} must be whole {ending} data, got: {error}") from error
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        got = error.strerror if isinstance(error, OSError) else error
        raise FenchelError(f"{path} must be a readable file, got: {got}") from error
