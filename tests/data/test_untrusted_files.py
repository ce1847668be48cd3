"""Whatever bytes a data file has: it is read, or the error is a named one, and memory is bounded.

`law_readers(seed)` is the law for one drawn file; a fuzz loop may call it with any seed.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fenchel import FenchelError
from fenchel.data.embeddings import copy_vectors
from fenchel.data.lines import MAX_CHARACTERS, count_lines
from fenchel.data.records import read_records
from fenchel.data.texts import iterate_labelled_texts
from fenchel.data.vocabulary import Vocabulary
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.headlines import reuters_headlines
from fenchel.tasks.sequences.inflection import read_inflection
from fenchel.tasks.sequences.parallel import read_parallel
from tests.mutations import memory_limit, mutated_bytes

Read = Callable[[Any], object]
PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
WORDS = ({"lemma": "Haus", "form": "Häuser", "tags": "N;PL"}, {"lemma": "ev", "tags": ["N"]})
PAIRS = ({"source": "ein Hund 😀", "target": "a dog"}, {"source": "zwei", "target": "two"})
TEXTS = ({"label": "good", "text": "ein Film 😀"}, {"label": 0, "text": "zwei"})
NEWS = ({"lewis": "TRAIN", "title": "A TITLE", "body": "word " * 12},)


def read_pairs(path: Any) -> list[dict[str, Any]]:
    records = read_records(path, ("source", "target"), columns={"target": "text"}, keep_blank=True)
    return [record.fields for record in records]


def read_texts(path: Any) -> list[tuple[str, str | None] | None]:
    found = iterate_labelled_texts(path, keep_blank=True)
    return [None if each is None else (each.text, each.label) for each in found]


def read_vectors(path: Any) -> list[list[float]]:
    weight = torch.zeros(6, 2)
    copy_vectors(path, Vocabulary(["ein", "Hund"]), weight)
    return weight.tolist()


def vectors_npz() -> bytes:
    """An .npz file of vectors, compressed as numpy does."""
    file = io.BytesIO()
    words = np.frombuffer(b"ein\nHund", np.uint8)
    np.savez_compressed(file, words=words, vectors=np.eye(2))
    return file.getvalue()


FORMATS: dict[str, tuple[str, Read]] = {
    "de.tsv": ("Haus\tHäuser\tN;PL\nev\tevler\tN;PL\n", read_inflection),
    "de.txt": ("lemma\ttags\tlanguage\nHaus\tN;PL\tde\n", read_inflection),
    "de.jsonl": ("\n".join(map(json.dumps, WORDS)), read_inflection),
    "pairs.tsv": ("ein Hund\ta dog\r\nzwei\ttwo\r\n", read_parallel),
    "pairs.ndjson": ("\n".join(map(json.dumps, PAIRS)), read_parallel),
    "gaps.tsv": ("text\tsource\tid\n\na dog\tein Hund\t1\n", read_pairs),
    "gaps.jsonl": ('{"source": "a", "text": "b"}\n\n{"text": "", "source": 1}', read_pairs),
    "text": ("ein Hund\nzwei\n", read_parallel),
    "both": ("ein Hund\nzwei\n", lambda path: read_parallel(path, path)),
    "news.jsonl": ("\n".join(map(json.dumps, NEWS)), reuters_headlines),
    "texts.tsv": ("good\tein Film\r\n0\tzwei\r\n", read_texts),
    "texts.jsonl": ("\n\n".join(map(json.dumps, TEXTS)), read_texts),
    "vectors.txt": ("ein 1 2\nHund 3 4\n", read_vectors),
    "counted": ("ein Hund\nzwei\n", count_lines),
}


@contextmanager
def standard_input(file: Any) -> Iterator[None]:
    """Read standard input from a binary file, which is closed at the end."""
    before, sys.stdin = sys.stdin, io.TextIOWrapper(file)
    try:
        yield
    finally:
        sys.stdin.close()
        sys.stdin = before


def law_readers(seed: int) -> bool:
    """A drawn file of a drawn format is read, or refused by a `FenchelError`; whether it was read.

    The content is a valid file whose bytes were mutated, before or after it was compressed, or random
    bytes; it comes from a file or, where a reader takes it, from standard input. Any other exception
    breaks the law.
    """
    random = Random(seed)
    name = random.choice(list(FORMATS))
    ending = random.choice(list(PACK))
    text, read = FORMATS[name]
    content = random.choice((text.encode(), text.encode("utf-16"), random.randbytes(200)))
    if random.random() < 0.7:
        content = mutated_bytes(content, random)
    packed = PACK[ending](content)
    if random.random() < 0.3:
        packed = mutated_bytes(packed, random)
    try:
        if name != "both" and random.random() < 0.2:
            with standard_input(io.BytesIO(packed)):
                read("-")
        else:
            with TemporaryDirectory() as folder:
                path = Path(folder, name + ending)
                path.write_bytes(packed)
                read(path)
    except FenchelError:
        return False
    return True


@settings(max_examples=400)
@given(seed=st.integers(0, 2**63))
def test_drawn_files_are_read_or_refused(seed: int):
    law_readers(seed)


@settings(max_examples=200)
@given(seed=st.integers(0, 2**63))
def test_drawn_npz_files_are_read_or_refused(seed: int):
    with TemporaryDirectory() as folder, memory_limit(2**31), suppress(FenchelError):
        path = Path(folder, "vectors.npz")
        path.write_bytes(mutated_bytes(vectors_npz(), Random(seed)))
        read_vectors(path)


def test_some_drawn_files_are_read_and_some_refused():
    assert {law_readers(seed) for seed in range(50)} == {True, False}


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read_plain_and_compressed(tmp_path: Path, name: str, ending: str):
    text, read = FORMATS[name]
    plain, packed = tmp_path / name, tmp_path / (name + ending)
    packed.write_bytes(PACK[ending](text.encode()))
    plain.write_text(text, encoding="utf-8", newline="")
    assert read(packed) == read(plain)


def _bomb(path: Path, pack: Any, times: int) -> Path:
    with pack(path, "wb") as file:
        for _ in range(times):
            file.write(b"x" * 2**20)
    return path


def _peak(read: Read, path: Any) -> int:
    """The most memory that Python has held while a file was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(FenchelError, match=":1: line must have at most 1,000,000 characters"):
            read(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MOST_MEMORY = 5 * 4 * MAX_CHARACTERS  # bytes: some copies of the longest line that may be valid


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "counted"])
def test_a_line_without_end_is_refused_before_it_is_read(tmp_path: Path, name: str, ending: str):
    packers = {"": open, ".gz": gzip.open, ".xz": lzma.open}
    path = _bomb(tmp_path / (name + ending), packers[ending], times=32)
    assert MOST_MEMORY < 32 * 2**20
    assert _peak(FORMATS[name][1], path) < MOST_MEMORY


def test_standard_input_without_end_is_refused_before_it_is_read(tmp_path: Path):
    path = _bomb(tmp_path / "text", open, times=32)
    with standard_input(path.open("rb")):
        assert _peak(read_parallel, "-") < MOST_MEMORY


def test_blank_lines_take_no_memory(tmp_path: Path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"\n" * 2**17 + b"a"))
    tracemalloc.start()
    with pytest.raises(FenchelError, match=":1: line must not be blank"):
        read_parallel(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**19


@pytest.mark.parametrize("letter", ["x", "ä", "日", "😀"])
def test_the_longest_line_is_read_whatever_its_letters(tmp_path: Path, letter: str):
    path, longest = tmp_path / "text", letter * MAX_CHARACTERS
    for before, after in (("", ""), ("\ufeff", "\r\n"), ("\ufeff", "\nb")):
        path.write_text(before + longest + after, encoding="utf-8", newline="")
        assert read_parallel(path)[0] == Example(longest)
        path.write_text(before + letter + longest + after, encoding="utf-8", newline="")
        with pytest.raises(FenchelError, match="text:1: line must have at most 1,000,000 char"):
            read_parallel(path)
