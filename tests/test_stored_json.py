"""JSON text is parsed or refused by a `ValueError`, and errors show values in short."""

from __future__ import annotations

from typing import Any

import pytest

from fenchel.stored_json import parse_json, shortened


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
