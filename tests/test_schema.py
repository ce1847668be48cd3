"""JSON is read into the types that were written, and an error names the field that does not fit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from fenchel import FenchelError
from fenchel.schema import from_json, parse_json, shortened


@dataclass(frozen=True)
class Part:
    size: int
    kind: Literal["small", "large"] = "small"

    def __post_init__(self) -> None:
        if self.size < 0:
            raise FenchelError(f"size must be at least 0, got {self.size}")


@dataclass(frozen=True)
class Whole:
    part: Part
    rate: float | Literal["auto"]
    others: list[Part] = field(default_factory=list)
    notes: dict[str, str | None] | None = None


FULL = {
    "part": {"size": 1, "kind": "large"},
    "rate": 2,
    "others": [{"size": 3}],
    "notes": {"a": None, "b": "c"},
}


def test_nested_dataclasses_are_made():
    made = from_json(Whole, FULL, "file")
    assert made == Whole(Part(1, "large"), 2, [Part(3)], {"a": None, "b": "c"})
    assert from_json(Whole, {"part": {"size": 0}, "rate": "auto"}, "file") == Whole(Part(0), "auto")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (3, "file must be an object, got 3"),
        ({"rate": 1.0}, "file must have the key 'part'"),
        ({**FULL, "more": 1}, "file must not have the key 'more'"),
        ({**FULL, "part": {"size": True}}, "file: part.size must be a whole number, got True"),
        ({**FULL, "part": {"size": 1.0}}, "file: part.size must be a whole number, got 1.0"),
        ({**FULL, "part": {"size": -1}}, "file: part: size must be at least 0, got -1"),
        ({**FULL, "part": {"size": 1, "kind": "s"}}, "part.kind must be 'small' or 'large', got"),
        ({**FULL, "rate": math.nan}, "file: rate must be a number or 'auto', got nan"),
        ({**FULL, "rate": 10**400}, "file: rate must be a number or 'auto', got 1000"),
        ({**FULL, "rate": False}, "file: rate must be a number or 'auto', got False"),
        ({**FULL, "others": {}}, "file: others must be a list, got {}"),
        ({**FULL, "others": [{}]}, "file: others[0] must have the key 'size'"),
        ({**FULL, "notes": {"a": 1}}, "file: notes.a must be a string or null, got 1"),
        ({**FULL, "notes": []}, "file: notes must be an object or null, got []"),
    ],
)
def test_a_value_that_does_not_fit_is_named(change: Any, message: str):
    with pytest.raises(FenchelError, match=re.escape(message)):
        from_json(Whole, change, "file")


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "9" * 5000, r'"\ud800"', r'{"a": "\udc00\ud800"}', "\0"]
)
def test_what_is_not_json_is_a_value_error(text: str):
    with pytest.raises(ValueError):  # noqa: PT011  (the messages are those of Python)
        parse_json(text)


def test_a_letter_of_two_surrogates_is_json():
    assert parse_json(r'"\ud83d\ude00"') == "\U0001f600"


def test_long_values_are_cut_off():
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    for value in ("a" * 10**6, [1] * 1000, 10**5000, nested):
        assert len(shortened(value)) < 80
