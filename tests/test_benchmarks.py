"""The benchmarks compare equals, keep every field, and divide the right times."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("entmax")
pytest.importorskip("matplotlib")

import fenchel
from benchmarks import __main__ as command
from benchmarks.angle_loop import AngleLoop, loop_over_angles
from benchmarks.compilation import ROWS, compile_ahead, processes, tasks_of
from benchmarks.environment import Environment, describe
from benchmarks.inputs import make_inputs, square_basis
from benchmarks.peers import OPERATIONS, largest_blocks
from benchmarks.picture import ratio_picture
from benchmarks.problems import Case, cpu_cases, gpu_cases
from benchmarks.progress import steps
from benchmarks.registry import Operation
from benchmarks.report import markdown
from benchmarks.rows import Row, make_rows, measured_before, read, update
from benchmarks.runner import Effort, Measurement, quantiles, race, ratios, rounds_for
from benchmarks.styles import STYLES
from benchmarks.timing import WallTimer, timer_for

TINY = Effort(rounds=4, seconds=10, slowest_call=10)
ABSENT = ("adasplash.",)  # peers that are not installed for the tests
PEERS = [
    pytest.param(ours, OPERATIONS[ours.family, peer], id=f"{ours.name} as {peer}")
    for ours in OPERATIONS.values()
    for peer in ours.peers
    if not peer.startswith(ABSENT) and ours.family != "continuous"
]


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


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize(("ours", "theirs"), PEERS)
def test_an_operation_computes_what_its_peer_computes(ours, theirs, backward):
    case = Case(ours.family, rows=6, columns=40, dtype=torch.float64, backward=backward, width=3)
    inputs = make_inputs(case)
    mine, other = (o.build(inputs, backward=backward)() for o in (ours, theirs))
    # The α gradient of the peer is exact only where its bisection has converged.
    torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("maps", "entmax.sparsemax"),
        ("maps", "entmax.entmax15"),
        ("losses", "entmax.entmax15_loss"),
    ],
)
def test_partial_sort_computes_what_the_full_sort_computes(family, name):
    inputs = make_inputs(Case(family, 4, 300, dtype=torch.float64))
    whole, partial = (
        OPERATIONS[family, n].build(inputs, backward=False)() for n in (name, f"{name}(k=100)")
    )
    torch.testing.assert_close(whole, partial)


@pytest.mark.parametrize("loop", [AngleLoop.apply, loop_over_angles], ids=["paper", "autograd"])
def test_a_loop_over_many_angles_computes_the_expectations_and_gradients(loop):
    inputs = make_inputs(Case("continuous", 3, 16, dtype=torch.float64, backward=True))
    ours = OPERATIONS["continuous", "fenchel.continuous.entmax(2)"]
    basis = square_basis(16, torch.float64, "cpu")
    looped = replace(
        ours, call=lambda x: loop(x.location, x.covariance, basis.centers, basis.scales, 400)
    )
    for backward in (False, True):
        mine, other = (one.build(inputs, backward=backward)() for one in (ours, looped))
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)


def test_the_layers_of_all_regions_look_at_the_same_function():
    inputs = make_inputs(
        Case("continuous-regions", 2, 196, dtype=torch.float64, backward=True, width=8)
    )
    name = "fenchel.nn.ContinuousAttention2d"
    fitting, fitted = (
        OPERATIONS["continuous-regions", n].build(inputs, backward=True)()
        for n in (name, f"{name}, values fitted before")
    )
    torch.testing.assert_close(fitting, fitted)


def test_names_of_baselines_and_peers_exist_in_the_same_family():
    for one in OPERATIONS.values():
        peers = [name for name in one.peers if not name.startswith(ABSENT)]
        assert {(one.family, other) for other in [one.baseline, *peers]} <= set(OPERATIONS)


def test_what_is_drawn_exists():
    known = {name for _, name in OPERATIONS}
    assert {name for name in STYLES if not name.startswith(ABSENT)} <= known


def test_of_the_blocks_of_a_kernel_the_two_longest_that_a_row_fills_are_tried():
    configs = [
        SimpleNamespace(kwargs={"BLOCK_N": size}) for size in (32, 64, 128, 256) for _ in range(2)
    ]

    def sizes(columns: int) -> list[int]:
        return [config.kwargs["BLOCK_N"] for config in largest_blocks(configs, columns)]

    assert sizes(10_000) == [128, 128, 256, 256]
    assert sizes(100) == [32, 32, 64, 64]
    assert sizes(4) == [32, 32]


def test_learned_alpha_gets_its_gradient_and_others_do_not():
    case = Case("maps", 3, 8, backward=True)
    inputs = make_inputs(case)
    learned = OPERATIONS["maps", "fenchel.entmax(α a row)"].build(inputs, backward=True)()
    fixed = OPERATIONS["maps", "fenchel.sparsemax"].build(inputs, backward=True)()
    assert [gradient.shape for gradient in learned] == [(3, 8), (3, 1)]
    assert [gradient.shape for gradient in fixed] == [(3, 8)]


def test_cases_of_a_cpu_hold_as_many_scores_whatever_the_columns():
    cases = cpu_cases(4_096_000)
    maps = [case for case in cases if case.family == "maps"]
    assert {case.columns for case in maps} == {64, 512, 8192, 128_000}
    assert all(case.rows * case.columns == 4_096_000 for case in maps)
    losses = {(c.rows, c.columns, c.backward) for c in cases if c.family == "losses"}
    assert losses == {(1024, 32_000, False), (1024, 32_000, True)}
    shapes = {(c.rows, c.columns) for c in cases if c.family == "structured"}
    assert shapes >= {(4096, 64), (4096, 512), (256, 8192), (2048, 1024), (2, 1_048_576)}
    regions = [c for c in cases if c.family == "continuous-regions"]
    assert {(c.rows, c.columns) for c in regions} == {(64, n * n) for n in (7, 14, 28, 56)}
    assert [(c.rows, c.columns) for c in cases if c.family == "continuous"] == [(512, 100)]
    assert len(set(cases)) == len(cases)


def test_cases_of_a_gpu_cover_maps_losses_layers_and_the_cost_of_a_call():
    cases = gpu_cases([torch.float32, torch.bfloat16])
    kinds = [(case.family, case.clock, case.dtype_name) for case in cases]
    assert len([kind for kind in kinds if kind[:2] == ("maps", "device")]) == 2 * 2 * 5
    half = {kind[0] for kind in kinds if kind[2] == "bfloat16"}
    assert half == {"maps", "losses", "layers", "structured"}
    assert kinds.count(("maps", "host", "float32")) == 2
    names = {c.family + c.clock: {o.name for o in command.select("", c)} for c in cases}
    assert {"torch.softmax", "fenchel.entmax(α a row)"} <= names["mapsdevice"]
    assert names["layersdevice"] >= {"fenchel.linear_entmax_loss(1.5)"}
    assert names["structureddevice"] >= {"fenchel.fusedmax", "CPU and back, fenchel.fusedmax"}
    assert all(name.startswith(("torch.", "fenchel.")) for name in names["mapshost"])
    forward, both = (command.select("", case) for case in cases[:2])
    assert {o.name for o in forward} - {o.name for o in both} == {"copy"}


def test_what_a_gpu_compiles_is_called_once_with_few_rows():
    problems = [(case, command.select("", case)) for case in gpu_cases([torch.float32])]
    tasks = tasks_of(problems)
    assert len(set(tasks)) == len(tasks)
    assert {case.rows for case, _ in tasks} == {ROWS, 4}
    slow = ("CPU and back", "adasplash.")
    assert tasks == sorted(tasks, key=lambda task: not task[1].startswith(slow))
    assert all(case.backward for case, _ in tasks)
    assert "torch.softmax" not in {name for _, name in tasks}
    assert tasks_of([(case, command.select("", case)) for case in cpu_cases(640)]) == []


def test_tasks_run_in_processes_of_their_own():
    case = Case("maps", 2, 4, backward=True)
    with processes() as pool:
        done = set(compile_ahead(pool, [(case, "torch.softmax"), (case, "no such operation")]))
    assert done == {f"torch.softmax, {case}", f"no such operation, {case}"}


def test_what_is_done_is_said_in_lines_where_there_is_no_terminal(capsys):
    assert list(steps("counting", [1, 2], 2, lambda n: f"at {n}")) == [1, 2]
    assert capsys.readouterr().out.splitlines() == [
        "counting 1/2: at 1",
        "counting 2/2: at 2",
        "counting, 2 done: 0 s",
    ]
    assert list(steps("nothing", [], 0)) == []
    assert capsys.readouterr().out == ""


def test_what_is_done_is_a_bar_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert list(steps("counting", [1, 2], 2)) == [1, 2]
    assert "2/2" in capsys.readouterr().out


def test_ratios_divide_times_of_the_same_round():
    assert ratios([2.0, 6.0], [1.0, 2.0, 100.0]) == [2.0, 3.0]
    assert ratios([], [1.0]) == []


def test_quantiles_are_robust_to_one_outlier():
    assert quantiles([1.0, 2.0, 3.0, 4.0, 1000.0]) == pytest.approx((1.8, 3.0, 203.2))
    assert quantiles([]) is None


def test_slow_contenders_take_part_in_fewer_rounds():
    effort = Effort(rounds=30, seconds=3.0, slowest_call=2.0)
    assert rounds_for(0.001, effort) == 30
    assert rounds_for(0.5, effort) == 6
    assert rounds_for(1.9, effort) == 3
    assert rounds_for(2.1, effort) == 1
    assert rounds_for(1.9, replace(effort, fewest=5)) == 5


def test_rows_divide_by_the_baseline_and_the_peer():
    race = [
        Measurement(operation("slow"), [2.0, 4.0, 8.0]),
        Measurement(operation("fast", peer="slow"), [1.0, 1.0], peak=3 * 2**20),
        Measurement(operation("absent", peer="slow"), note="too slow"),
    ]
    case = Case("maps", 4, 8)
    baseline, fast, absent = make_rows(case, race, describe("cpu"))
    assert (baseline.ratio_q20, baseline.ratio_q50, baseline.ratio_q80) == (1, 1, 1)
    assert fast.ratio_q50 == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert fast.speedup_q50 == pytest.approx((2 + 4) / 2)
    assert fast.milliseconds_q50 == 1000
    assert (fast.peer, fast.peak_mib, baseline.peak_mib) == ("slow", 3.0, None)
    assert fast.repetitions == 2
    assert absent.ratio_q50 is absent.speedup_q50 is absent.milliseconds_q50 is None
    assert (absent.repetitions, absent.note) == (0, "too slow")


def test_rows_compare_with_a_copy_and_with_the_fastest_peer():
    ours = replace(operation("ours"), peers=("other", "slow", "absent"))
    race = [
        Measurement(operation("copy"), [1.0, 2.0]),
        Measurement(operation("slow"), [8.0, 8.0]),
        Measurement(operation("other"), [6.0, 6.0]),
        Measurement(ours, [2.0, 4.0]),
    ]
    row = make_rows(Case("maps", 4, 8), race, describe("cpu"))[-1]
    assert (row.copies_q50, row.peer, row.speedup_q50) == (2.0, "other", (3.0 + 1.5) / 2)


def test_contenders_take_turns_and_the_baseline_runs_every_round():
    order: list[str] = []

    def spy(name: str) -> Operation:
        call = operation(name).call
        return replace(operation(name), call=lambda x: order.append(name) or call(x))

    result = race(Case("maps", 512, 64), [spy("slow"), spy("a"), spy("b")], WallTimer(), TINY)
    assert [len(measurement.times) for measurement in result] == [4, 4, 4]
    measured = order[3 * 2 + 3 :]  # after the guesses and the warm-up
    turns = [measured[i : i + 3] for i in range(0, len(measured), 3)]
    assert len(turns) == 4
    assert all(sorted(turn) == ["a", "b", "slow"] for turn in turns)


def test_a_contender_that_is_too_slow_is_left_out_with_the_reason():
    effort = Effort(rounds=4, seconds=10, slowest_call=2.0)
    timer = FakeTimer(0.1, 0.1, 0.1, 0.3)  # the second takes 0.3 s for 1/16 of the rows
    first, second = race(Case("maps", 512, 64), [operation("slow"), operation("b")], timer, effort)
    assert len(first.times) == 4
    assert second.times == []
    assert second.note == "one call takes about 4.8 s, the limit is 2 s"


def test_our_own_operations_are_never_left_out():
    effort = Effort(rounds=4, seconds=0.0, slowest_call=0.0)
    race_of = [operation("slow"), operation("fenchel.slow"), operation("b")]
    baseline, ours, other = race(Case("maps", 32, 64), race_of, FakeTimer(0.3), effort)
    assert [len(m.times) for m in (baseline, ours, other)] == [1, 1, 0]


def test_a_race_that_took_its_time_ends_with_the_round(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("benchmarks.runner.time.monotonic", lambda: next(clock))
    effort = Effort(rounds=30, seconds=10, fewest=2, race_seconds=4.5)
    race_of = [operation("slow"), operation("b")]
    result = race(Case("maps", 4, 8), race_of, FakeTimer(0.01), effort)
    assert [len(measurement.times) for measurement in result] == [6, 6]


def test_a_contender_that_fails_is_left_out_with_the_reason_unless_it_is_ours():
    def fail(_):
        raise RuntimeError("it does not compile\nat line 3")

    theirs, ours = (replace(operation(n), call=fail) for n in ("theirs", "fenchel.ours"))
    case = Case("maps", 4, 8)
    _, left_out = race(case, [operation("slow"), theirs], WallTimer(), TINY)
    assert (left_out.times, left_out.note) == ([], "fails: RuntimeError: it does not compile")
    with pytest.raises(RuntimeError, match="does not compile"):
        race(case, [operation("slow"), ours], WallTimer(), TINY)


def test_environment_says_where_it_ran():
    environment = describe("cpu")
    assert describe("cpu", commit="abc") == replace(environment, commit="abc", dirty=False)
    assert [f.name for f in fields(Row)][: len(fields(Environment))] == [
        f.name for f in fields(Environment)
    ]
    assert environment.hardware
    assert environment.threads == torch.get_num_threads()
    assert environment.torch == torch.__version__
    assert environment.fenchel == fenchel.__version__
    assert environment.peers.startswith("entmax 1.3")
    assert isinstance(timer_for(Case("maps", 4, 8)), WallTimer)


def row(**changes: object) -> Row:
    measured = [
        Measurement(operation("torch.softmax"), [1.0] * 3),
        Measurement(operation("fenchel.sparsemax", "torch.softmax"), [2.0] * 3),
    ]
    return replace(make_rows(Case("maps", 4, 8), measured, describe("cpu"))[1], **changes)


def test_rows_survive_the_file_and_replace_only_their_own_commit(tmp_path):
    path = tmp_path / "cpu.csv"
    old, new = row(commit="aaaa", ratio_q50=4.0), row(commit="bbbb", ratio_q50=2.0, note="a, b")
    update(path, [old])
    assert update(path, [new]) == [old, new]
    again = replace(new, ratio_q50=None, rows=7)
    update(path, [again])
    assert read(path) == [old, again]
    assert [file.name for file in tmp_path.iterdir()] == ["cpu.csv"]


def test_rows_of_another_family_or_width_keep_their_place(tmp_path):
    path = tmp_path / "cpu.csv"
    rows = [row(), row(family="structured"), row(width=3)]
    for one in rows:
        update(path, [one])
    assert read(path) == rows
    cases = {case for case, _ in measured_before(path, rows[0].commit)}
    assert cases == {Case("maps", 4, 8), Case("structured", 4, 8), Case("maps", 4, 8, width=3)}
    assert measured_before(path, "another") == set()


def test_report_shows_ratios_reasons_and_the_change_since_a_commit():
    rows = [
        row(ratio_q20=1.9, ratio_q50=2.0, ratio_q80=2.5, commit="bbbb"),
        row(operation="entmax.sparsemax", ratio_q50=None, note="one call takes a day"),
    ]
    text = markdown(rows, [row(commit="aaaa", ratio_q50=4.0)])
    assert "| `fenchel.sparsemax` | 2 (1.9–2.5) |" in text
    assert "| `entmax.sparsemax` | left out |" in text
    assert "one call takes a day" in text
    assert "Against commit aaaa" in text
    assert "| `fenchel.sparsemax` | 4 × 8 | float32 | forward | 4 | 2 | 0.50 |" in text


def test_report_of_a_gpu_shows_copies_memory_and_the_cost_of_a_call():
    layer = row(operation="fenchel.linear_entmax_loss(1.5)", family="layers", width=5, peak_mib=7.2)
    on_gpu = {"device": "cuda", "triton": "3.6", "copies_q50": 1.25}
    host = row(clock="host", milliseconds_q50=0.02)
    text = markdown([row(**on_gpu), layer, host])
    assert "Triton 3.6" in text
    assert "| `fenchel.sparsemax` | 1.25 |" in text
    assert "| operation | 4 × 5 × 8 |" in text
    assert "| `fenchel.linear_entmax_loss(1.5)` | 7 |" in text
    assert "Microseconds (median):\n\n| operation | 4 × 8 |\n| --- | ---: |" in text
    assert "| `fenchel.sparsemax` | 20 |" in text


def test_rows_of_an_older_file_are_read(tmp_path):
    path = tmp_path / "cpu.csv"
    update(path, [row()])
    table = [line.split(",") for line in path.read_text().splitlines()]
    newer = [table[0].index(name) for name in ("triton", "peers", "width", "clock", "peak_mib")]
    older = [[cell for i, cell in enumerate(line) if i not in newer] for line in table]
    path.write_text("\n".join(map(",".join, older)) + "\n")
    assert read(path) == [row(triton="", peers="")]


def test_picture_has_a_line_for_every_map_and_a_bar_for_every_loss():
    rows = [
        row(ratio_q50=2.0),
        row(ratio_q50=4.0, columns=16),
        row(ratio_q50=3.0, direction="forward+backward"),
        row(
            ratio_q50=0.5,
            family="losses",
            direction="forward+backward",
            operation="fenchel.entmax_loss(1.5)",
        ),
        row(ratio_q50=9.0, clock="host"),
    ]
    forward, both, losses = ratio_picture(rows).axes
    assert [list(line.get_ydata()) for line in forward.lines[1:]] == [[2.0, 4.0]]
    assert [list(line.get_ydata()) for line in both.lines[1:]] == [[3.0]]
    assert [bar.get_width() for bar in losses.patches] == [0.5]


def test_picture_shows_structured_maps_and_continuous_attention_below():
    both = {"direction": "forward+backward"}
    structured = {"family": "structured", "baseline": "fenchel.sparsemax"} | both
    image = {"family": "continuous-regions", "ratio_q50": 9.0} | both
    rows = [
        row(ratio_q50=2.0),
        row(operation="fenchel.sparsemax", ratio_q50=1.0, **structured),
        row(operation="fenchel.fusedmax", ratio_q50=5.0, **structured),
        row(family="continuous", operation="fenchel.continuous.entmax(2)", ratio_q50=0.04, **both),
        row(operation="softmax attention", columns=49, milliseconds_q50=3.0, **image),
        row(operation="softmax attention", columns=196, milliseconds_q50=4.0, **image),
    ]
    axes = ratio_picture(rows).axes
    upper, below = axes[0], axes[3:]
    assert upper.get_title() == "maps, forward, float32"
    assert [list(line.get_ydata()) for line in below[0].lines[1:]] == [[5.0]]
    assert [bar.get_width() for bar in below[1].patches] == [0.04]
    assert [list(line.get_ydata()) for line in below[2].lines] == [[3.0, 4.0]]


def test_report_says_what_a_score_of_a_structured_map_costs():
    rows = [row(family="structured", operation="fenchel.fusedmax", milliseconds_q50=0.0032)]
    text = markdown(rows)
    assert "| `fenchel.fusedmax` | 100 |" in text  # 3200 ns for 4 × 8 scores
    peer = "CPU and back, fenchel.fusedmax"
    text = markdown([row(family="structured", peer=peer, speedup_q50=25.0)])
    assert "| `fenchel.sparsemax` | 25 (CPU and back) |" in text


def test_there_is_nothing_to_draw_without_results(tmp_path):
    with pytest.raises(fenchel.FenchelError, match="there must be results to draw"):
        command.main(["--draw", "--out", str(tmp_path)])


def test_command_writes_rows_with_all_fields_and_compares_with_a_commit(tmp_path, capsys):
    arguments = ["--quick", "--elements", "640", "--only", "fenchel.sparsemax", "--out"]
    command.main([*arguments, str(tmp_path)])
    rows = read(tmp_path / "cpu-quick.csv")
    header = (tmp_path / "cpu-quick.csv").read_text().splitlines()[0]
    assert header.split(",") == [field.name for field in fields(Row)]
    names = {"torch.softmax", "fenchel.sparsemax", "F.cross_entropy", "fenchel.sparsemax_loss"}
    assert {row.operation for row in rows} == names
    measured = [c for c in cpu_cases(640) if not c.family.startswith("continuous")]
    alone = [c for c in measured if c.family == "structured"]  # there it is the baseline
    assert len(rows) == 2 * len(measured) - len(alone)
    for line in rows:
        assert line.commit
        assert line.hardware
        assert line.date
        if not line.note:
            assert line.repetitions >= 1
            assert line.milliseconds_q20 <= line.milliseconds_q50 <= line.milliseconds_q80
            assert line.ratio_q50 > 0
    assert (tmp_path / "cpu-quick.png").read_bytes().startswith(b"\x89PNG")

    command.main([*arguments, str(tmp_path), "--base", rows[0].commit[:4]])
    assert f"Against commit {rows[0].commit}" in (tmp_path / "cpu-quick.md").read_text()
    (tmp_path / "cpu-quick.md").unlink()
    command.main(["--quick", "--draw", "--out", str(tmp_path)])
    assert (tmp_path / "cpu-quick.md").read_text().startswith("# Benchmarks")
    with pytest.raises(fenchel.FenchelError, match=r"--base must name a commit in cpu-quick\.csv"):
        command.main([*arguments, str(tmp_path), "--base", "no such commit"])
    assert "wrote cpu-quick.md and cpu-quick.png" in capsys.readouterr().out.replace("\n", " ")


def test_a_run_that_is_killed_loses_only_the_case_in_flight_and_can_go_on(tmp_path, capsys):
    killed = """
import os, signal, sys
from benchmarks import __main__ as command
update, cases = command.update, iter(range(2))
def update_and_die(path, rows):
    if next(cases, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return update(path, rows)
command.update = update_and_die
command.main(sys.argv[1:])
"""
    arguments = ["--quick", "--elements", "640", "--only", "^fenchel.sparsemax$"]
    arguments += ["--commit", "abc", "--out", str(tmp_path)]
    root = Path(command.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(root)}
    run = [sys.executable, "-c", killed, *arguments]
    assert subprocess.run(run, env=environment, check=False, capture_output=True).returncode < 0
    path = tmp_path / "cpu-quick.csv"
    assert len(measured_before(path, "abc")) == 2 * 2
    capsys.readouterr()
    command.main([*arguments, "--resume"])
    measured = capsys.readouterr().out
    assert "measuring maps, float32 6/6" in measured
    maps = {case for case, _ in measured_before(path, "abc") if case.family == "maps"}
    assert maps == {case for case in cpu_cases(640) if case.family == "maps"}
    command.main([*arguments, "--resume"])
    assert "measuring" not in capsys.readouterr().out


def test_a_case_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    def fail_at_512(x):
        if x.scores.shape[-1] == 512:
            raise RuntimeError("a kernel that does not compile")
        return fenchel.fusedmax(x.scores)

    key = ("structured", "fenchel.fusedmax")
    monkeypatch.setitem(OPERATIONS, key, replace(OPERATIONS[key], call=fail_at_512))
    with pytest.raises(ExceptionGroup, match="cases that could not be measured") as raised:
        command.main(
            ["--quick", "--elements", "640", "--only", "structured", "--out", str(tmp_path)]
        )
    (failure,) = raised.value.exceptions
    assert failure.__notes__ == ["while measuring structured 1 × 512 float32 forward+backward"]
    assert {row.columns for row in read(tmp_path / "cpu-quick.csv")} == {64}
    assert (tmp_path / "cpu-quick.md").exists()


def test_a_family_can_be_asked_for_by_its_name(tmp_path):
    arguments = ["--quick", "--elements", "640", "--out", str(tmp_path), "--only"]
    command.main([*arguments, "structured"])
    command.main([*arguments, "continuous$"])
    rows = read(tmp_path / "cpu-quick.csv")
    assert {row.family for row in rows} == {"structured", "continuous"}
    assert {row.operation for row in rows if row.family == "structured"} == {
        "fenchel.sparsemax",
        "fenchel.fusedmax",
        "fenchel.oscarmax",
    }


def test_a_pattern_without_a_match_is_an_error(tmp_path):
    with pytest.raises(fenchel.FenchelError, match="--only must match"):
        command.main(["--quick", "--only", "no such operation", "--out", str(tmp_path)])
