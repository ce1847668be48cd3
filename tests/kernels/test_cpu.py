"""The Numba kernels: every length, as accurate as the oracle, on however many threads."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

import fenchel
from tests.accuracy import accuracy, assert_within
from tests.kernels.peaked_rows import peaked_rows

ALPHAS = (0.5, 1.0, 1.01, 1.2, 1.5, 1.75, 2.0, 2.5, 4.0)
LENGTHS = (1, 2, 15, 16, 17, 31, 32, 33, 63, 65, 255, 256, 257, 300, 1000, 4097)
LARGE = (128, 2048)  # enough work for every thread
PEAKED_ACCURACY = 4e-7


def on(implementation: str, function, *args):
    with fenchel.implementation(implementation):
        return function(*args)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_row_of_any_length_agrees_with_the_reference(alpha, scale, dtype):
    for columns in LENGTHS:
        x = (scale * torch.randn(3, columns, dtype=torch.float64)).to(dtype)
        x[1, columns // 2 :] = -torch.inf
        p = on("cpu", fenchel.entmax, x, alpha)
        assert_within(p, on("reference", fenchel.entmax, x.double(), alpha), accuracy(dtype))
        assert_within(p[[0, 2]].double().sum(-1), torch.ones(2), accuracy(dtype))


@pytest.mark.parametrize("columns", [16, 64, 200, 1000])
@pytest.mark.parametrize("alpha", [1.02, 1.1, 1.3, 1.46, 1.6, 1.8, 1.9, 1.97])
def test_peaked_rows_are_exact(alpha, columns):
    """Where a small step moves many equal entries over the edge of the support, it is not linear."""
    x = peaked_rows(columns, alpha, 32)
    p = on("cpu", fenchel.entmax, x, alpha)
    assert_within(p, on("reference", fenchel.entmax, x.double(), alpha), PEAKED_ACCURACY)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", [1e-40, 0.01, 1.0, 100.0, 1e30])
def test_one_threshold_is_found_in_a_row_of_any_length(scale, dtype):
    """k from nothing to everything, scores that tie, infinite ones, and some far below the others."""
    for columns in LENGTHS:
        x = (scale * torch.randn(6, columns, dtype=torch.float64)).to(dtype)
        x[1, columns // 2 :] = -torch.inf
        x[2] = x[2].bfloat16().to(dtype)
        x[3, 0] = torch.inf
        x[4, columns // 2 :] -= 1e9
        x[5, : columns // 2] += 5000.0
        shares = [(fenchel.budget, share * columns) for share in (0.0, 0.01, 0.3, 1.0)]
        few = [(fenchel.budget, k) for k in (1, 2.5, 20) if k <= columns]
        norms = [(fenchel.normmax, alpha) for alpha in (1.05, 1.5, 2.0, 6.0)]
        for function, value in shares + few + norms:
            exact = on("reference", function, x.double(), value)
            assert_within(on("cpu", function, x, value), exact, accuracy(dtype))


@pytest.mark.parametrize("order", ["as_drawn", "rising", "peaked"])
@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1e-10])
@pytest.mark.parametrize("alpha", [2.5, 10.0, 100.0])
def test_tiny_scores_in_float32_are_told_apart_in_any_order(alpha, scale, order):
    """Below a larger one their differences are lost in its digits, and the support is searched."""
    x = (scale * torch.randn(3, 1000, dtype=torch.float64)).float()
    if order != "as_drawn":
        x = x.sort(-1).values
    if order == "peaked":
        x = torch.cat([x[:, ::2], x[:, 1::2].flip(-1)], -1)
    x[1:, 7] = 1e-3
    p = on("cpu", fenchel.entmax, x, alpha)
    assert_within(p, on("reference", fenchel.entmax, x.double(), alpha), 1e-7)
    loss = on("cpu", fenchel.entmax_loss, x, torch.arange(3), alpha)
    expected = on("reference", fenchel.entmax_loss, x.double(), torch.arange(3), alpha)
    assert_within(loss, expected, accuracy(torch.float32))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_kernel_reads_and_writes_its_own_rows_alone(alpha):
    """Tensors that begin anywhere in memory, between numbers that must not be touched or used."""
    for columns in (1, 7, 33, 300):
        for start in range(4):
            memory = torch.full((start + 2 * columns + 9,), torch.nan, dtype=torch.float32)
            x = memory[start : start + 2 * columns].view(2, columns)
            x.copy_(torch.randn(2, columns))
            expected = on("reference", fenchel.entmax, x.clone(), alpha)
            assert_within(on("cpu", fenchel.entmax, x, alpha), expected, 1e-6)
            assert memory[start + 2 * columns :].isnan().all()


def forward_and_backward(x: Tensor) -> list[Tensor]:
    results = []
    for alpha in (1.0, 1.3, 1.5, 2.0, 2.5):
        leaf = x.clone().requires_grad_()
        p = fenchel.entmax(leaf, alpha)
        loss = fenchel.entmax_loss(leaf, torch.arange(x.shape[0]), alpha, reduction="none")
        results += [p.detach(), loss.detach()]
        results += torch.autograd.grad(p.square().sum() + loss.sum(), leaf)
    return results


def test_eight_threads_at_once_get_what_one_gets():
    inputs = [torch.randn(LARGE) for _ in range(8)]
    expected = [forward_and_backward(x) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for alone, together in zip(
                expected, pool.map(forward_and_backward, inputs), strict=True
            ):
                assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


@pytest.fixture
def restore_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("restore_threads")
def test_the_number_of_threads_does_not_change_the_result():
    x = torch.randn(LARGE)
    results = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        results.append(forward_and_backward(x))
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def run_in_a_process(script: str, timeout: float = 240) -> str:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs os.fork")
def test_a_forked_child_of_a_process_that_used_the_kernels_computes_correctly():
    output = run_in_a_process(
        """
        import os, signal
        import torch, fenchel

        torch.set_num_threads(2)
        x = torch.randn(128, 2048)

        target = torch.zeros(128).long()

        def work():  # nothing but kernels: torch's own large operations may not run after a fork
            p = fenchel.entmax(x, 1.3)
            loss = fenchel.entmax_loss(x, target, 1.3, reduction="none")
            slope = torch.ops.fenchel.entmax_backward(x, p, 1.3, -1)
            return [result.numpy() for result in (p, loss, slope)]

        expected = work()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # a child that hangs is killed, and the parent sees it
            same = all((a == b).all() for a, b in zip(work(), expected))
            os._exit(0 if same else 1)
        _, status = os.waitpid(pid, 0)
        print("child", status, "parent", all((a == b).all() for a, b in zip(work(), expected)))
        """
    )
    assert output == "child 0 parent True\n"


def test_a_second_process_compiles_nothing():
    script = """
        import gc
        import torch, fenchel
        from fenchel.kernels.cpu.launch.compilation import Kernel

        x = torch.randn(3, 40, requires_grad=True)
        fenchel.entmax(x, 1.5).square().sum().backward()
        kernels = [k for k in gc.get_objects() if isinstance(k, Kernel)]
        used = [code.compiled for kernel in kernels for code in kernel.compiled.values()]
        print(len(used), sum(code.cache_hits for code in used))
        """
    run_in_a_process(script)
    used, loaded = run_in_a_process(script).split()
    assert int(used) >= 2
    assert loaded == used


@pytest.mark.parametrize(
    "changed",
    [
        "cpu/normmax.py",
        "cpu/launch/memory.py",
        "cpu/shared/columns.py",
        "reference/paraboloid_window.py",
    ],
)
def test_code_that_is_stored_belongs_to_every_file_that_it_is_made_of(tmp_path, changed):
    kernels = tmp_path / "kernels"
    shutil.copytree(Path(fenchel.__file__).parent / "kernels", kernels)
    copied = runpy.run_path(str(kernels / "cpu" / "launch" / "compilation.py"))
    digest = copied["_sources"].__wrapped__
    before = digest()
    assert digest() == before
    with (kernels / changed).open("a") as file:
        file.write("# changed\n")
    assert digest() != before


OWN_ALPHAS = torch.tensor([1.0, 1.05, 1.3, 1.5, 1.6, 1.9, 2.0, 2.5, 0.7])[
    torch.arange(41) % 9, None
]
OWN_BUDGETS = torch.tensor([0.0, 0.5, 1.0, 2.5, 4.0])[torch.arange(41) % 5, None]
TOGETHER = {
    fenchel.entmax: (1.1, 1.3, 1.5, 1.75, 2.0, 2.5, 6.0, OWN_ALPHAS),
    fenchel.normmax: (2.0,),
    fenchel.budget: (0.5, 2.0, 5, OWN_BUDGETS),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("columns", [5, 64, 100, 256, 700])
@pytest.mark.parametrize("function", TOGETHER, ids=lambda function: function.__name__)
def test_a_row_gets_among_others_what_it_gets_alone(function, columns, dtype):
    """Short rows are solved many at a time, whatever the parameter of each."""
    x = torch.randn(41, columns, dtype=dtype)
    x[3], x[7, 1], x[20] = -torch.inf, torch.nan, 0.0
    x[21], x[22, 2:] = 100 * x[21], -1e9
    for value in TOGETHER[function]:
        together = on("cpu", function, x, value)
        for i, p in enumerate(together):
            each = value[i] if isinstance(value, Tensor) else value
            alone = on("cpu", function, x[i], each)
            assert torch.equal(p.nan_to_num(-1.0), alone.nan_to_num(-1.0))
