"""Pretrained word vectors are copied to the rows of their words, whatever the format of the file."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import torch

from fenchel import FenchelError
from fenchel.data.embeddings import copy_vectors
from fenchel.data.vocabulary import Vocabulary

VOCABULARY = Vocabulary(["film", "good", ". .", "été"])
VECTORS = {"film": [1, -2.5, 3], "other": [4, 5, 6], ". .": [7, 8, 9], "été": [0.1, 0.2, 0.3]}
TEXT = "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in VECTORS.items())


def save_npz(path, words=tuple(VECTORS)):
    joined = np.frombuffer("\n".join(words).encode(), np.uint8)
    np.savez(path, words=joined, vectors=np.array([*VECTORS.values()], np.float64))


def text_file(folder):
    path = folder / "vectors.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def compressed_file(folder):
    path = folder / "vectors.txt.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    return path


def npz_file(folder):
    path = folder / "vectors.npz"
    save_npz(path)
    return path


def npz_file_of_bytes(folder):
    path = folder / "vectors.npz"
    np.savez(path, words="\n".join(VECTORS).encode(), vectors=np.array([*VECTORS.values()]))
    return path


@pytest.mark.parametrize("make", [text_file, compressed_file, npz_file, npz_file_of_bytes])
def test_vectors_are_copied_to_the_rows_of_known_words(tmp_path, make):
    before = torch.full((len(VOCABULARY), 3), -1.0)
    weight = before.clone()
    copy_vectors(make(tmp_path), VOCABULARY, weight)
    known = [word for word in VECTORS if word in VOCABULARY]
    rows = VOCABULARY.ids(known)
    assert len(set(rows)) == 3
    torch.testing.assert_close(weight[rows], torch.tensor([VECTORS[word] for word in known]))
    others = [row for row in range(len(VOCABULARY)) if row not in rows]
    assert torch.equal(weight[others], before[others])


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("make", [text_file, npz_file])
def test_vectors_of_another_size_are_refused(tmp_path, make, size):
    path = make(tmp_path)
    message = {
        "vectors.txt": rf"vectors\.txt:1: line must have a word and {size} numbers, got 'film 1",
        "vectors.npz": rf"one vector of size {size} per word, got 4 words and vectors of .* \(4, 3\)",
    }[path.name]
    weight = torch.zeros(len(VOCABULARY), size)
    with pytest.raises(FenchelError, match=message):
        copy_vectors(path, VOCABULARY, weight)
    assert not weight.any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "other 1 2 3\nfilm 1 2\n",
            r"v\.txt:2: line must have a word and 3 numbers, got 'film 1 2'",
        ),
        ("2 3\nfilm 1 2 3\n", r"v\.txt:1: line must have a word and 3 numbers, got '2 3'"),
        ("film 1 2 x\n", r"v\.txt:1: vector must be numbers, got: .*'x'"),
        ("film 1 2 3\n\xff", r"v\.txt:2: text must be UTF-8"),
        ("", r"v\.txt must have at least one line"),
    ],
)
def test_a_line_without_a_vector_is_named(tmp_path, text, message):
    (tmp_path / "v.txt").write_bytes(text.encode("latin-1"))
    with pytest.raises(FenchelError, match=message):
        copy_vectors(tmp_path / "v.txt", VOCABULARY, torch.zeros(len(VOCABULARY), 3))


def without_vectors(path):
    np.savez(path, words=np.zeros(3, np.uint8))


def pickled(path):
    np.savez(path, words=np.zeros(3, np.uint8), vectors=np.array([object()]))


@pytest.mark.parametrize(
    "save",
    [
        without_vectors,
        pickled,
        lambda path: path.write_bytes(b"film 1 2 3\n"),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"PK\3\4film"),
    ],
)
def test_a_file_without_words_and_vectors_is_named(tmp_path, save):
    path = tmp_path / "vectors.npz"
    save(path)
    with pytest.raises(FenchelError, match=r"vectors\.npz must have words and vectors, got: "):
        copy_vectors(path, VOCABULARY, torch.zeros(len(VOCABULARY), 3))


def test_every_word_needs_a_vector(tmp_path):
    save_npz(tmp_path / "v.npz", words=["film"])
    with pytest.raises(FenchelError, match=r"got 1 words and vectors of shape \(4, 3\)"):
        copy_vectors(tmp_path / "v.npz", VOCABULARY, torch.zeros(len(VOCABULARY), 3))
