"""`--set key=value`: typed, nested, and helpful when a name is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from fenchel import FenchelError
from fenchel.recipes.overrides import override, settings


@dataclass(frozen=True)
class Model:
    hidden_size: int = 300
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
class Whole:
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
    changed = settings(override(Whole(), [assignment]))
    assert changed[path] == value
    assert type(changed[path]) is type(value)
    unchanged = settings(Whole())
    assert {key for key in changed if changed[key] != unchanged[key]} <= {path}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("hiden_size=3", "'hidden_size' \\(the nearest\\)"),
        ("model.hiden_size=3", "'model.hidden_size' \\(the nearest\\)"),
        ("hidden_size=many", "hidden_size has a type: expected a whole number, got 'many'"),
        ("strength=much", "a number or none"),
        ("feeding=perhaps", "true or false"),
        ("segmentation=syllables", "one of characters, words"),
        ("size=3", "model.size or data.size"),
        ("hidden_size", "an override is key=value"),
    ],
)
def test_a_wrong_assignment_says_what_would_be_right(assignment, message):
    with pytest.raises(FenchelError, match=message):
        override(Whole(), [assignment])


def test_later_assignments_win():
    assert override(Whole(), ["metric=a", "metric=b"]).metric == "b"


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
