"""Measures all operations of a case in one process, in rounds.

In every round each operation is timed once, in a new order, and every ratio divides two times of the same
round, so that a slow phase of the machine affects both. Slow operations take part in fewer rounds; those
of other packages are left out, with the reason, if they fail or are too slow.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from benchmarks.errors import largest_error
from benchmarks.inputs import Inputs, make_inputs
from benchmarks.problems import Case
from benchmarks.registry import Operation
from benchmarks.timing import Timer

QUANTILES = (0.2, 0.5, 0.8)
PROBE = 16  # speed is first estimated on 1 / PROBE of the rows

Quantiles = tuple[float, float, float]


@dataclass(frozen=True)
class Effort:
    """Limits of a measurement.

    Attributes:
        rounds: Maximum number of rounds.
        seconds: Time per operation, which limits its rounds.
        slowest_call: Operations of other packages that take longer per call are left out.
        fewest: Minimum number of rounds.
        case_seconds: No round begins after this time, once there are `fewest`.
    """

    rounds: int = 30
    seconds: float = 1.0
    slowest_call: float = 2.0
    fewest: int = 3
    case_seconds: float = 60.0


@dataclass(frozen=True)
class Measurement:
    """The times of one operation.

    Attributes:
        operation: The operation.
        times: Seconds per round; empty if the operation was left out.
        note: Why it was left out.
        peak: Peak memory beyond the inputs in bytes, on devices that count it.
        error: Largest error of the probabilities of a map.
    """

    operation: Operation
    times: list[float] = field(default_factory=list)
    note: str = ""
    peak: int | None = None
    error: float | None = None


def measure_case(
    case: Case,
    operations: Sequence[Operation],
    timer: Timer,
    effort: Effort,
) -> list[Measurement]:
    """Measure `operations` on `case` in turns, each round in a new order."""
    inputs, probe = make_inputs(case), make_inputs(_probe(case))
    steps, lengths, notes = {}, {}, {}
    for operation in operations:
        try:
            seconds = _estimate(operation, probe, case, timer)
        except Exception as failure:
            if not operation.optional:
                raise
            notes[operation.name] = f"fails: {_first_line(failure)}"
            continue
        if operation.optional and seconds > effort.slowest_call:
            limit = f"the limit is {effort.slowest_call:g} s"
            notes[operation.name] = f"one call takes about {seconds:.1f} s, {limit}"
            continue
        steps[operation.name] = operation.build(inputs, backward=case.backward)
        lengths[operation.name] = rounds_for(seconds, effort)
    for baseline in {operation.baseline for operation in operations} & set(lengths):
        lengths[baseline] = max(lengths.values())  # every round of an operation needs its baseline
    times = _take_turns(steps, lengths, timer, effort)
    for operation in operations:
        if operation.name in times:
            repeats = operation.repeats(case.rows)
            times[operation.name] = [seconds * repeats for seconds in times[operation.name]]
    peaks = {name: peak_bytes(step) for name, step in steps.items() if inputs.target.is_cuda}
    compared = operations if case.clock == "device" and not case.backward else ()
    errors = {o.name: largest_error(o, inputs) for o in compared if o.name in steps}
    return [
        Measurement(
            o, times.get(o.name, []), notes.get(o.name, ""), peaks.get(o.name), errors.get(o.name)
        )
        for o in operations
    ]


def rounds_for(seconds: float, effort: Effort) -> int:
    """The number of rounds of an operation whose call takes `seconds`."""
    if seconds > effort.slowest_call:
        return 1
    return int(min(effort.rounds, max(effort.fewest, effort.seconds / max(seconds, 1e-9))))


def ratios(times: Sequence[float], others: Sequence[float]) -> list[float]:
    """The quotients of two lists of times, for the rounds that both have."""
    return [mine / other for mine, other in zip(times, others, strict=False)]


def quantiles(values: Sequence[float]) -> Quantiles | None:
    if not values:
        return None
    low, middle, high = np.quantile(values, QUANTILES)
    return float(low), float(middle), float(high)


def peak_bytes(step: Callable[[], object]) -> int:
    """The peak memory of a step on a GPU, beyond what was allocated before it."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _probe(case: Case) -> Case:
    """The same problem with a share of its rows, unless it is small."""
    return replace(case, rows=case.rows // PROBE) if case.rows >= PROBE * PROBE else case


def _estimate(operation: Operation, probe: Inputs, case: Case, timer: Timer) -> float:
    """The estimated time of a call, from a call on a share of the rows after one that may compile."""
    step = operation.build(probe, backward=case.backward)
    timer.time(step)
    rows = probe.target.shape[0]
    return timer.time(step) * operation.repeats(rows) * case.rows / rows


def _first_line(failure: Exception) -> str:
    lines = str(failure).strip().splitlines()
    return f"{type(failure).__name__}: {lines[0][:120]}" if lines else type(failure).__name__


def _take_turns(
    steps: dict[str, Callable[[], object]],
    lengths: dict[str, int],
    timer: Timer,
    effort: Effort,
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in steps}
    deadline = time.monotonic() + effort.case_seconds
    order = list(steps)
    shuffle = random.Random(0).shuffle
    for number in range(-1, max(lengths.values(), default=0)):  # number −1 is a warm-up
        if number >= effort.fewest and time.monotonic() > deadline:
            break
        shuffle(order)
        for name in order:
            slow = lengths[name] <= effort.fewest
            if number >= lengths[name] or (number < 0 and slow):
                continue
            seconds = timer.time(steps[name])
            if number >= 0:
                times[name].append(seconds)
    return times
