"""Operations, times and rows that no measurement made."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.environment import describe
from benchmarks.problems import Case
from benchmarks.registry import Operation
from benchmarks.rows import Row, make_rows
from benchmarks.runner import Measurement


class FakeTimer:
    """Runs the step and says that it took what its operation is known to take."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)
        self.calls = 0

    def time(self, step) -> float:
        step()
        self.calls += 1
        return self.seconds[(self.calls - 1) % len(self.seconds)]


def operation(name: str, baseline: str = "slow", peer: str | None = None) -> Operation:
    return Operation(name, "maps", baseline, lambda x: x.scores * 2, (peer,) if peer else ())


def row(**changes: object) -> Row:
    measured = [
        Measurement(operation("torch.softmax"), [1.0] * 3),
        Measurement(operation("fenchel.sparsemax", "torch.softmax"), [2.0] * 3),
    ]
    return replace(make_rows(Case("maps", 4, 8), measured, describe("cpu"))[1], **changes)
