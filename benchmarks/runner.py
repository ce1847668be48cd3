"""In which order: all contenders of a case take turns in one process.

Every ratio divides two times of the same round, so that what slows the machine for a while slows
both. Slow contenders leave after fewer rounds; a peer that is too slow does not start.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.registry import Case, Inputs, Operation, make_inputs
from benchmarks.timing import Timer

QUANTILES = (0.2, 0.5, 0.8)
PROBE = 16  # the share of the rows on which a contender's speed is guessed
FEWEST = 3

Quantiles = tuple[float, float, float]


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds a case, seconds a contender, and the slowest call of a peer."""

    rounds: int = 30
    seconds: float = 2.0
    slowest_call: float = 2.0


@dataclass(frozen=True)
class Measurement:
    """The seconds of one contender, round by round; none if it was left out, as `note` says."""

    operation: Operation
    times: list[float] = field(default_factory=list)
    note: str = ""


def race(
    case: Case,
    operations: Sequence[Operation],
    timer: Timer,
    effort: Effort,
    on_call: Callable[[], None] = lambda: None,
) -> list[Measurement]:
    """Measure `operations` on `case` in turns, each round in a new order."""
    inputs = make_inputs(case)
    steps, lengths, notes = {}, {}, {}
    for operation in operations:
        seconds = _guess(operation, inputs, case, timer)
        on_call()
        if operation.optional and seconds > effort.slowest_call:
            limit = f"the limit is {effort.slowest_call:g} s"
            notes[operation.name] = f"one call takes about {seconds:.1f} s, {limit}"
            continue
        steps[operation.name] = operation.build(inputs, backward=case.backward)
        lengths[operation.name] = rounds_for(seconds, effort)
    for baseline in {operation.baseline for operation in operations} & set(lengths):
        lengths[baseline] = max(lengths.values())  # every round of a contender needs its baseline
    times = _take_turns(steps, lengths, timer, on_call)
    return [Measurement(o, times.get(o.name, []), notes.get(o.name, "")) for o in operations]


def rounds_for(seconds: float, effort: Effort) -> int:
    """How many rounds a contender takes part in, if one call takes `seconds`; one if too slow."""
    if seconds > effort.slowest_call:
        return 1
    return int(min(effort.rounds, max(FEWEST, effort.seconds / max(seconds, 1e-9))))


def ratios(times: Sequence[float], others: Sequence[float]) -> list[float]:
    """The times over the others', round by round, for the rounds that both ran."""
    return [mine / other for mine, other in zip(times, others, strict=False)]


def quantiles(values: Sequence[float]) -> Quantiles | None:
    if not values:
        return None
    low, middle, high = np.quantile(values, QUANTILES)
    return float(low), float(middle), float(high)


def _guess(operation: Operation, inputs: Inputs, case: Case, timer: Timer) -> float:
    """Seconds of one call, from a call on a share of the rows, after one that may compile."""
    rows = max(case.rows // PROBE, 1)
    for part in (_part(inputs, 1, min(case.columns, 64)), _part(inputs, rows, case.columns)):
        seconds = timer.time(operation.build(part, backward=case.backward))
    return seconds * case.rows / rows


def _part(inputs: Inputs, rows: int, columns: int) -> Inputs:
    return Inputs(
        scores=inputs.scores[:rows, :columns].contiguous(),
        alpha=inputs.alpha[:rows],
        target=inputs.target[:rows].clamp(max=columns - 1),
        upstream=inputs.upstream[:rows, :columns].contiguous(),
    )


def _take_turns(
    steps: dict[str, Callable[[], object]],
    lengths: dict[str, int],
    timer: Timer,
    on_call: Callable[[], None],
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in steps}
    order = list(steps)
    shuffle = random.Random(0).shuffle
    for lap in range(-1, max(lengths.values(), default=0)):  # lap −1 warms up
        shuffle(order)
        for name in order:
            slow = lengths[name] <= FEWEST
            if lap >= lengths[name] or (lap < 0 and slow):
                continue
            seconds = timer.time(steps[name])
            on_call()
            if lap >= 0:
                times[name].append(seconds)
    return times
