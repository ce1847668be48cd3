"""A file is read as it is, or the error says which file, which line, and what is wrong."""

from __future__ import annotations

import gzip
import io
import lzma
import sys

import pytest

from fenchel import FenchelError
from fenchel.data.lines import count_lines, plain_name, plain_or_packed, read_lines


def texts(path) -> list[str]:
    return [text for _, text in read_lines(path)]


def test_lines_end_with_newlines_alone(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("a\u2028b\x85c\r\n d \n\n\n".encode())
    assert texts(path) == ["a\u2028b\x85c", " d "]


def test_a_byte_order_mark_is_no_text(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("a\nb".encode("utf-8-sig"))
    assert texts(path) == ["a", "b"]


PACKERS = [(".xz", lzma.compress), (".gz", gzip.compress)]


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
def test_compressed_files_read_as_plain_ones(tmp_path, ending, pack):
    path = tmp_path / f"text.tsv{ending}"
    path.write_bytes(pack("ä\nb\n".encode()))
    assert texts(path) == ["ä", "b"]
    assert count_lines(path) == 2
    assert plain_name(path) == "text.tsv"
    assert plain_or_packed(tmp_path / "text.tsv") == path
    assert plain_or_packed(tmp_path / "other.tsv") is None


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("ä\nb\n".encode())))
    lines = read_lines("-")
    assert list(lines) == [(1, "ä"), (2, "b")]
    assert lines.name == "standard input"


@pytest.mark.parametrize(("content", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2)])
def test_counted_lines_include_blank_ones(tmp_path, content, lines):
    path = tmp_path / "text"
    path.write_bytes(content)
    assert count_lines(path) == lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "text must have at least one line that is not blank$"),
        (b"\n \n", "text must have at least one line that is not blank$"),
        (b"a\nb\xff\n", "text, line 2: text must be UTF-8, got the byte 0xff"),
        ("ä".encode("utf-16"), "line 1: text must be UTF-8"),
        (b"a\nb\0c\n", "text, line 2: text must not contain NUL characters"),
        ("a\nb\n".encode("utf-16-le"), "line 1: text must not contain NUL characters"),
    ],
)
def test_what_is_no_text_is_named_with_its_line(tmp_path, content, message):
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(FenchelError, match=message):
        texts(path)


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(FenchelError, match=r"missing must be a readable file, got: No such file"):
        read_lines(tmp_path / "missing")
    with pytest.raises(FenchelError, match="must be a readable file, got: Is a directory"):
        read_lines(tmp_path)
    with pytest.raises(FenchelError, match="must be a readable file, got: embedded null byte"):
        read_lines("a\0b")


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda _: b"plain text"])
def test_a_compressed_file_that_is_not_whole_is_said(tmp_path, ending, pack, damage):
    path = tmp_path / f"text{ending}"
    path.write_bytes(damage(pack(b"a\n" * 1000)))
    for read in (texts, count_lines):
        with pytest.raises(
            FenchelError, match=rf"text\{ending} must be whole \{ending} data, got: "
        ):
            read(path)
