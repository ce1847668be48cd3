"""Text of unknown origin, such as data, answers and names of files, made safe to print."""

from __future__ import annotations

import re

# Control characters other than tab and newline, separators of lines and paragraphs, bidirectional
# embeddings, overrides and isolates, and lone surrogates. Joiners and direction marks are ordinary text.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
BREAKS = str.maketrans("\t\n\r", "   ")


def printable(text: str) -> str:
    r"""Escape what would steer a terminal; tabs and newlines stay.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    r"""`printable`, with newlines escaped too.

    >>> print(one_line("a\nb"))
    a\nb
    """
    return printable(text).replace("\n", r"\n")


def without_breaks(text: str) -> str:
    r"""The text with spaces for tabs and line ends, which separate the columns and lines of an output.

    >>> without_breaks("a\tb\n")
    'a b '
    """
    return text.translate(BREAKS)
