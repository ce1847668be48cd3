"""Operations take turns; those of other packages that are too slow or fail are left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.problems import Case
from benchmarks.registry import Operation
from benchmarks.runner import Effort, measure_case, quantiles, ratios, rounds_for
from benchmarks.timing import WallTimer
from tests.benchmarks.made_up import FakeTimer, operation

TINY = Effort(rounds=4, seconds=10, slowest_call=10)


def test_ratios_divide_times_of_the_same_round():
    assert ratios([2.0, 6.0], [1.0, 2.0, 100.0]) == [2.0, 3.0]
    assert ratios([], [1.0]) == []


def test_quantiles_are_robust_to_one_outlier():
    assert quantiles([1.0, 2.0, 3.0, 4.0, 1000.0]) == pytest.approx((1.8, 3.0, 203.2))
    assert quantiles([]) is None


def test_slow_operations_take_part_in_fewer_rounds():
    effort = Effort(rounds=30, seconds=3.0, slowest_call=2.0)
    assert rounds_for(0.001, effort) == 30
    assert rounds_for(0.5, effort) == 6
    assert rounds_for(1.9, effort) == 3
    assert rounds_for(2.1, effort) == 1
    assert rounds_for(1.9, replace(effort, fewest=5)) == 5


def test_operations_take_turns_and_the_baseline_runs_every_round():
    order: list[str] = []

    def spy(name: str) -> Operation:
        call = operation(name).call
        return replace(operation(name), call=lambda x: order.append(name) or call(x))

    result = measure_case(
        Case("maps", 512, 64), [spy("slow"), spy("a"), spy("b")], WallTimer(), TINY
    )
    assert [len(measurement.times) for measurement in result] == [4, 4, 4]
    measured = order[3 * 2 + 3 :]  # after the guesses and the warm-up
    turns = [measured[i : i + 3] for i in range(0, len(measured), 3)]
    assert len(turns) == 4
    assert all(sorted(turn) == ["a", "b", "slow"] for turn in turns)


def test_an_operation_that_is_too_slow_is_left_out_with_the_reason():
    effort = Effort(rounds=4, seconds=10, slowest_call=2.0)
    timer = FakeTimer(0.1, 0.1, 0.1, 0.3)  # the second takes 0.3 s for 1/16 of the rows
    first, second = measure_case(
        Case("maps", 512, 64), [operation("slow"), operation("b")], timer, effort
    )
    assert len(first.times) == 4
    assert second.times == []
    assert second.note == "one call takes about 4.8 s, the limit is 2 s"


def test_our_own_operations_are_never_left_out():
    effort = Effort(rounds=4, seconds=0.0, slowest_call=0.0)
    operations = [operation("slow"), operation("fenchel.slow"), operation("b")]
    baseline, ours, other = measure_case(Case("maps", 32, 64), operations, FakeTimer(0.3), effort)
    assert [len(m.times) for m in (baseline, ours, other)] == [1, 1, 0]


def test_no_round_begins_after_the_time_of_a_case(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("benchmarks.runner.time.monotonic", lambda: next(clock))
    effort = Effort(rounds=30, seconds=10, fewest=2, case_seconds=4.5)
    operations = [operation("slow"), operation("b")]
    result = measure_case(Case("maps", 4, 8), operations, FakeTimer(0.01), effort)
    assert [len(measurement.times) for measurement in result] == [6, 6]


def test_an_operation_that_fails_is_left_out_with_the_reason_unless_it_is_ours():
    def fail(_):
        raise RuntimeError("it does not compile\nat line 3")

    theirs, ours = (replace(operation(n), call=fail) for n in ("theirs", "fenchel.ours"))
    case = Case("maps", 4, 8)
    _, left_out = measure_case(case, [operation("slow"), theirs], WallTimer(), TINY)
    assert (left_out.times, left_out.note) == ([], "fails: RuntimeError: it does not compile")
    with pytest.raises(RuntimeError, match="does not compile"):
        measure_case(case, [operation("slow"), ours], WallTimer(), TINY)
