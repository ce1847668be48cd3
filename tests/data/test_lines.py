"""Text files are read line by line; errors name the file and the line."""

from __future__ import annotations

import gzip
import io
import lzma
import sys

import pytest

from fenchel import FenchelError
from fenchel.data.lines import count_lines, find_file, read_lines, uncompressed_name


def texts(path) -> list[str]:
    return [text for _, text in read_lines(path)]


def test_lines_end_with_newlines_alone(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("a\u2028b\x85c\r\n d \n\n\n".encode())
    assert texts(path) == ["a\u2028b\x85c", " d "]


def test_a_byte_order_mark_is_removed(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("a\nb".encode("utf-8-sig"))
    assert texts(path) == ["a", "b"]


COMPRESSORS = [(".xz", lzma.compress), (".gz", gzip.compress)]


@pytest.mark.parametrize(("ending", "compress"), COMPRESSORS)
def test_compressed_files_read_as_plain_ones(tmp_path, ending, compress):
    path = tmp_path / f"text.tsv{ending}"
    path.write_bytes(compress("ä\nb\n".encode()))
    assert texts(path) == ["ä", "b"]
    assert count_lines(path) == 2
    assert uncompressed_name(path) == "text.tsv"
    assert find_file(tmp_path / "text.tsv") == path
    assert find_file(tmp_path / "other.tsv") is None


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
        (b"a\nb\xff\n", "text:2: text must be UTF-8, got the byte 0xff"),
        ("ä".encode("utf-16"), "text:1: text must be UTF-8"),
        (b"a\nb\0c\n", "text:2: text must not contain NUL characters"),
        ("a\nb\n".encode("utf-16-le"), "text:1: text must not contain NUL characters"),
    ],
)
def test_invalid_text_is_reported_with_its_line(tmp_path, content, message):
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(FenchelError, match=message):
        texts(path)


def test_unreadable_files_are_reported(tmp_path):
    with pytest.raises(FenchelError, match=r"missing must be a readable file, got: No such file"):
        read_lines(tmp_path / "missing")
    with pytest.raises(FenchelError, match="must be a readable file, got: Is a directory"):
        read_lines(tmp_path)
    with pytest.raises(FenchelError, match="must be a readable file, got: embedded null byte"):
        read_lines("a\0b")


@pytest.mark.parametrize(("ending", "compress"), COMPRESSORS)
@pytest.mark.parametrize("damage", [lambda compressed: compressed[:-9], lambda _: b"plain text"])
def test_damaged_compressed_files_are_reported(tmp_path, ending, compress, damage):
    path = tmp_path / f"text{ending}"
    path.write_bytes(damage(compress(b"a\n" * 1000)))
    for read in (texts, count_lines):
        with pytest.raises(
            FenchelError, match=rf"text\{ending} must be complete \{ending} data, got: "
        ):
            read(path)
