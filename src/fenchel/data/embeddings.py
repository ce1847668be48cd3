"""Pretrained word vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fenchel.data.lines import read_lines
from fenchel.data.vocabulary import Vocabulary
from fenchel.errors import FenchelError
from fenchel.stored_json import shortened


def copy_vectors(path: str | Path, vocabulary: Vocabulary, weight: Tensor) -> None:
    """Copy the vectors of known words into the rows of `weight`; other rows stay as they are.

    Args:
        path: A text file with a word and its numbers on every line, as GloVe's, or an .npz file with
            `vectors` (N, size) and `words`, UTF-8 bytes separated by newlines.
        vocabulary: The words, whose ids are the rows.
        weight: The embeddings (len(vocabulary), size).
    """
    path, size = Path(path), weight.shape[1]
    read = _read_npz if path.suffix == ".npz" else _read_text
    for word, vector in read(path, vocabulary, size):
        weight[vocabulary.ids([word])[0]] = torch.from_numpy(vector)


def _read_text(path: Path, vocabulary: Vocabulary, size: int) -> Iterator[tuple[str, np.ndarray]]:
    lines = read_lines(path)
    for number, text in lines:
        word, *numbers = text.rstrip().rsplit(" ", size)
        # Some words of GloVe contain spaces, but not the first: there they mean a larger size.
        if len(numbers) != size or (number == 1 and " " in word):
            message = f"line must have a word and {size} numbers, got {shortened(text)}"
            raise lines.error(number, message)
        if word in vocabulary:
            try:
                yield word, np.array(numbers, np.float32)
            except ValueError as error:
                raise lines.error(number, f"vector must be numbers, got: {error}") from error


def _read_npz(path: Path, vocabulary: Vocabulary, size: int) -> Iterator[tuple[str, np.ndarray]]:
    try:
        with path.open("rb") as file, np.load(file) as stored:
            words = stored["words"].tobytes().rstrip(b"\0").decode().split("\n")
            vectors = stored["vectors"].astype(np.float32)
    except Exception as error:  # numpy and zipfile raise almost anything if the file is damaged
        raise FenchelError(f"{path} must have words and vectors, got: {error}") from error
    if vectors.shape != (len(words), size):
        got = f"{len(words)} words and vectors of shape {vectors.shape}"
        raise FenchelError(f"{path} must have one vector of size {size} per word, got {got}")
    yield from (pair for pair in zip(words, vectors, strict=True) if pair[0] in vocabulary)
