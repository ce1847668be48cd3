"""Text files read line by line, with errors that name the file and the line.

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

from fenchel.data.bad_items import BadItems
from fenchel.errors import FenchelError

STANDARD_INPUT = "-"
MAX_CHARACTERS = 1_000_000  # of a line
MAX_BYTES = 4 * MAX_CHARACTERS  # UTF-8 takes at most four bytes per character
DECOMPRESSORS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}


class Lines:
    """An iterator over the lines of a file: pairs of a number, starting at 1, and a text.

    Texts come without their line ends; a line of white space is "". Blank lines at the end of the
    file are left out. The lines are read during the iteration, and can be iterated over only once.

    Attributes:
        path: The path of the file.
        name: The name of the file in errors.
        bad: Takes the errors of lines that cannot be read; a skipped line is "".
        first: The number and the text of the first line that is not blank.
    """

    def __init__(self, path: str | PurePath, name: str, bad: BadItems) -> None:
        self.path, self.name, self.bad = path, name, bad
        self._unreadable: set[int] = set()
        texts = _read_texts(path, name, self._skip)
        filled = ((number, text) for number, text in enumerate(texts, start=1) if text.strip())
        first = next(filled, None)
        if first is None:
            got = f"; {bad.summary}" if self._unreadable else ""
            raise FenchelError(f"{name} must have at least one line that is not blank{got}")
        self.first = first
        self._filled = chain([first], filled)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        last = 0
        for number, text in self._filled:
            yield from ((blank, "") for blank in range(last + 1, number))
            yield number, text
            last = number

    def error(self, number: int, message: str) -> FenchelError:
        """Return an error at line `number`."""
        return _error(self.name, number, message)

    def is_blank(self, number: int, text: str) -> bool:
        """Whether a line is blank, and not one that could not be read and was skipped."""
        return not text and number not in self._unreadable

    def _skip(self, number: int, error: FenchelError) -> str:
        self.bad.add(error)
        self._unreadable.add(number)
        return ""


def read_lines(path: str | PurePath, bad: BadItems | None = None) -> Lines:
    """Read the lines of a file; `bad` takes the errors of those that cannot be read.

    Raises:
        FenchelError: If the file cannot be read, has only blank lines, is not valid UTF-8, or has a
            line of more than a million characters, which is not read to its end.
    """
    name = "standard input" if is_standard_input(path) else str(path)
    return Lines(path, name, bad or BadItems())


def is_standard_input(path: str | PurePath) -> bool:
    return str(path) == STANDARD_INPUT


def uncompressed_name(path: str | PurePath) -> str:
    """Return the name of a file without its folders and without .xz or .gz.

    >>> uncompressed_name("task1/german-dev.tsv.xz")
    'german-dev.tsv'
    """
    name = PurePath(path)
    return name.stem if name.suffix in DECOMPRESSORS else name.name


def find_file(path: Path) -> Path | None:
    """Return `path` or, if there is no such file, the same with .xz or .gz; None if all are missing."""
    candidates = (path, *(path.with_name(path.name + suffix) for suffix in DECOMPRESSORS))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def count_lines(path: str | PurePath) -> int:
    """Return the number of lines of a file, including blank lines."""
    count, last = 0, b"\n"
    with _open(path) as file:
        while chunk := file.read(2**20):
            count, last = count + chunk.count(b"\n"), chunk[-1:]
    return count + (last != b"\n")


def _read_texts(
    path: str | PurePath, name: str, skip: Callable[[int, FenchelError], str]
) -> Iterator[str]:
    """Read the lines of a file as text without line ends; `skip` replaces those that are none."""
    limit = len(BOM_UTF8) + MAX_BYTES + len(b"\r\n")
    with _open(path) as file:
        number = 0
        while read := file.readline(limit):
            number += 1
            line = read.removesuffix(b"\n").removesuffix(b"\r")
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
            try:
                text = _decode(line, name, number)
            except FenchelError as error:
                text = skip(number, error)
                while len(read) == limit and not read.endswith(b"\n"):
                    read = file.readline(limit)
            yield text


def _decode(line: bytes, name: str, number: int) -> str:
    try:
        text = line.decode() if len(line) <= MAX_BYTES else None
    except UnicodeDecodeError as error:
        got = f"the byte 0x{line[error.start]:02x} ({error.reason})"
        raise _error(name, number, f"text must be UTF-8, got {got}") from error
    if text is None or len(text) > MAX_CHARACTERS:
        raise _error(name, number, f"line must have at most {MAX_CHARACTERS:,} characters")
    if "\0" in text:
        raise _error(name, number, "text must not contain NUL characters")
    return text


def _error(name: str, number: int, message: str) -> FenchelError:
    return FenchelError(f"{name}:{number}: {message}")


@contextmanager
def _open(path: str | PurePath) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; errors while it is read name the file."""
    if is_standard_input(path):
        yield sys.stdin.buffer
        return
    suffix = PurePath(path).suffix
    try:
        with DECOMPRESSORS.get(suffix, open)(path, "rb") as file:
            yield file
    except FenchelError:
        raise
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise FenchelError(f"{path} must be complete {suffix} data, got: {error}") from error
    except (OSError, ValueError) as error:  # ValueError: the name is not valid for any file
        got = error.strerror if isinstance(error, OSError) else error
        raise FenchelError(f"{path} must be a readable file, got: {got}") from error
