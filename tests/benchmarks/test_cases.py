"""Which problems the benchmarks measure on a CPU and on a GPU, and what they compile ahead."""

from __future__ import annotations

import torch

from benchmarks import __main__ as command
from benchmarks.compilation import ROWS, compile_ahead, processes, tasks_of
from benchmarks.problems import Case, cpu_cases, gpu_cases


def test_cases_of_a_cpu_hold_as_many_scores_whatever_the_columns():
    cases = cpu_cases(4_096_000)
    maps = [case for case in cases if case.family == "maps" and case.clock == "device"]
    assert {case.columns for case in maps} == {64, 512, 8192, 128_000}
    assert all(case.rows * case.columns == 4_096_000 for case in maps)
    losses = {(c.rows, c.columns, c.backward) for c in cases if c.family == "losses"}
    assert losses == {(1024, 32_000, False), (1024, 32_000, True)}
    shapes = {(c.rows, c.columns) for c in cases if c.family == "structured"}
    assert shapes >= {(4096, 64), (4096, 512), (256, 8192), (2048, 1024), (2, 1_048_576)}
    regions = [c for c in cases if c.family == "continuous-regions"]
    assert {(c.rows, c.columns) for c in regions} == {(64, n * n) for n in (7, 14, 28, 56)}
    assert [(c.rows, c.columns) for c in cases if c.family == "continuous"] == [(512, 100)]
    calls = [(c.rows, c.columns, c.backward) for c in cases if c.clock == "host"]
    assert calls == [(4, 64, False), (4, 64, True)]
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
