"""Settings are read from JSON, changed by `key=value` and described; errors name the setting."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from fenchel import FenchelError
from fenchel.settings import Setting, describe, flatten, from_json, load_settings, override


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
    assert type(made.rate) is float


def test_whole_numbers_stay_whole_where_both_kinds_are_declared():
    numbers = from_json(list[int | float], [1, 2.5], "file")
    assert [type(number) for number in numbers] == [int, float]
    with pytest.raises(FenchelError, match=r"file: \[0\] must be a number, got '1'"):
        from_json(list[int | float], ["1"], "file")


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
        ({**FULL, "rate": math.inf}, "file: rate must be a number or 'auto', got inf"),
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


def test_the_place_begins_with_the_given_path():
    for value, message in (
        ({"size": "1"}, "file: model.part.size must be a whole number, got '1'"),
        ({}, "file: model.part must have the key 'size'"),
        (None, "file: model.part must be an object, got None"),
    ):
        with pytest.raises(FenchelError, match=f"^{re.escape(message)}$"):
            from_json(Part, value, "file", "model.part")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [{1, 2}, "\ud800", nested(500), nested(100_000)])
def test_a_value_that_json_cannot_hold_is_refused(value: Any):
    with pytest.raises(FenchelError, match="file: part must be JSON, got"):
        from_json(dict[str, Any], {"a": value}, "file", "part")


@dataclass(frozen=True)
class Model:
    source_size: int = field(default=4, metadata={"derived": True})
    """Size of the source vocabulary."""
    hidden_size: int = 300
    """Size of the
    hidden states."""
    alpha: float | str = 1.5
    strength: float | None = None
    feeding: bool = True
    size: int = 1


@dataclass(frozen=True)
class Data:
    segmentation: Literal["characters", "words"] = "characters"
    names: tuple[str, ...] = ()
    size: int = 2


@dataclass(frozen=True)
class Settings:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    metric: str = "accuracy"


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("hidden_size=128", "model.hidden_size", 128),
        ("model.hidden_size=128", "model.hidden_size", 128),
        ("alpha=2", "model.alpha", 2.0),
        ("alpha=learned", "model.alpha", "learned"),
        ("strength=0.1", "model.strength", 0.1),
        ("strength=none", "model.strength", None),
        ("feeding=no", "model.feeding", False),
        ("segmentation=words", "data.segmentation", "words"),
        ("names=a, b", "data.names", ("a", "b")),
        ("data.size=7", "data.size", 7),
        ("metric = bleu=x", "metric", "bleu=x"),
    ],
)
def test_an_assignment_changes_one_field_and_keeps_its_type(assignment, path, value):
    changed = {each.path: each.value for each in describe(override(Settings(), [assignment]))}
    assert changed[path] == value
    assert type(changed[path]) is type(value)
    unchanged = {each.path: each.value for each in describe(Settings())}
    assert {key for key in changed if changed[key] != unchanged[key]} <= {path}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "hiden_size=3",
            "unknown setting 'hiden_size', did you mean 'hidden_size'? All settings: ",
        ),
        ("model.hiden_size=3", "did you mean 'model.hidden_size'? All settings: "),
        ("xyz=3", "unknown setting 'xyz'. All settings: fenchel list --settings RECIPE"),
        ("hidden_size=many", "--set hidden_size must be a whole number, got 'many'"),
        ("model.hidden_size=1.5", "--set model.hidden_size must be a whole number, got '1.5'"),
        ("strength=much", "--set strength must be a number or none, got 'much'"),
        ("strength=nan", "--set strength must be a number or none, got 'nan'"),
        ("feeding=perhaps", "--set feeding must be true or false, got 'perhaps'"),
        ("segmentation=x", "--set segmentation must be 'characters' or 'words', got 'x'"),
        ("size=3", "setting 'size' is ambiguous, use model.size or data.size"),
        ("source_size=3", "source_size is derived from the data and cannot be set"),
        ("hidden_size", "--set must be key=value, got 'hidden_size'"),
        ("=3", "--set must be key=value, got '=3'"),
    ],
)
def test_a_wrong_assignment_says_what_would_be_right(assignment, message):
    with pytest.raises(FenchelError, match=re.escape(message)):
        override(Settings(), [assignment])


def test_later_assignments_win():
    assert override(Settings(), ["metric=a", "metric=b"]).metric == "b"


@dataclass(frozen=True)
class Pair:
    left: int = 1
    right: int = 1

    def __post_init__(self):
        if self.left != self.right:
            raise FenchelError("both must be equal")


def test_changes_that_only_fit_together_are_made_together():
    assert override(Pair(), ["left=2", "right=2"]) == Pair(2, 2)
    with pytest.raises(FenchelError, match="both must be equal"):
        override(Pair(), ["left=2"])


def test_settings_are_described_by_the_docstrings_below_their_fields():
    described = describe(Settings())
    assert described[0] == Setting("model.hidden_size", 300, "Size of the hidden states.")
    assert described[1] == Setting("model.alpha", 1.5, "")
    assert [each.path for each in described][-3:] == ["data.names", "data.size", "metric"]


FILES = {
    "a.json": '{"model": {"alpha": "learned", "strength": null, "feeding": false}, "data.size": 3, '
    '"names": ["a", "b"]}',
    "a.yaml": "model: {alpha: learned, strength: null, feeding: no}\ndata.size: 3\nnames: [a, b]\n",
}


@pytest.mark.parametrize("name", FILES)
def test_settings_are_loaded_from_a_file(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_text(FILES[name])
    expected = Settings(Model(alpha="learned", feeding=False), Data(names=("a", "b"), size=3))
    assert override(Settings(), flatten(load_settings(path))) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", "{"), ("a.json", "[1]"), ("a.yaml", "a: [1"), ("a.yaml", "a"), ("a.json", None)],
)
def test_a_file_without_settings_is_named(tmp_path: Path, name: str, text: str | None):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(FenchelError, match=re.escape(f"{tmp_path / name} must ")):
        load_settings(tmp_path / name)


def test_a_wrong_value_in_a_file_is_named_with_the_file(tmp_path: Path):
    path = tmp_path / "own.yaml"
    path.write_text("model: {feeding: perhaps}\n")
    with pytest.raises(FenchelError, match=r"own\.yaml: model\.feeding must be true or false"):
        override(Settings(), flatten(load_settings(path)), f"{path}:")
