"""An example with several labels, and how its parts are written in files of any format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fenchel.stored_json import shortened

SEPARATOR = ","  # between the labels of a text


class Numbers(NamedTuple):
    """The features of an example: numbers, and the names of their columns.

    Of sparse rows, columns that are left out are zero. Dense rows of a file share the names.
    """

    columns: tuple[str, ...]
    values: NDArray[np.float64]
    is_sparse: bool = False


class MultilabelExample(NamedTuple):
    """A text or numbers, and the labels, which are None if they are to be predicted.

    `declared` has all labels that the file declares, each with the place where it does, if it does.
    """

    features: str | Numbers
    labels: tuple[str, ...] | None = None
    declared: Mapping[str, str] | None = None


LocatedExamples = Iterator[tuple[str, MultilabelExample | None]]  # with file and line, for errors


def parse_number(text: str) -> float:
    """A finite number; a `ValueError` says what must hold."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"must be a number, got {shortened(text)}") from None
    if not math.isfinite(number):
        raise ValueError(f"must be finite, got {text.strip()}")
    return number


def parse_indicator(text: str) -> bool:
    """Whether a label is on, which is written 1 or 0; a `ValueError` says what must hold."""
    try:
        return {0.0: False, 1.0: True}[float(text)]
    except (ValueError, KeyError):
        raise ValueError(f"must be 0 or 1, got {shortened(text)}") from None


def split_labels(text: str) -> tuple[str, ...]:
    """Labels between commas, each once.

    >>> split_labels("grain, wheat")
    ('grain', 'wheat')
    """
    return tuple(dict.fromkeys(each.strip() for each in text.split(SEPARATOR) if each.strip()))
