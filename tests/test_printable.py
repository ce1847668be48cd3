"""Characters that steer a terminal or break a line are escaped."""

from __future__ import annotations

import sys

import pytest

from fenchel.printable import one_line, printable
from tests.cli.unsafe import unsafe

ORDINARY = [
    "naïve, nai\u0308ve",
    "می\u200cخواهم",  # zero width non-joiner
    "👩\u200d🚀 क\u094d\u200dष",  # zero width joiner
    "עברית\u200f!",  # right-to-left mark
    "日本語 ▁ \u00ad",
    r"a\x1b",
    "a\tb\nc",
]


def test_every_unsafe_character_is_escaped_and_no_other():
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        escaped = char.encode("unicode_escape").decode()
        assert printable(char) == (escaped if unsafe(char) else char)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text):
    assert printable(text) == text


def test_a_newline_does_not_break_one_line():
    assert one_line("a\r\nb") == r"a\r\nb"
