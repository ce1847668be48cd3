"""Device and dtype decide which implementation runs; it can be explained and forced."""

from __future__ import annotations

import threading

import pytest
import torch

import fenchel
from fenchel.operators import dispatch
from tests.catalogue import on_every_implementation
from tests.implementations import running_on

X = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_cpu_tensors_run_on_the_numba_kernel(dtype):
    (choice,) = fenchel.explain(fenchel.entmax, X.to(dtype), 1.5)
    assert choice.implementation == "cpu"
    assert str(choice) == f"entmax: cpu (a CPU tensor of {dtype} runs on the Numba kernel)"


def test_explain_names_every_operator_that_ran_in_order():
    def attend_and_learn(x):
        fenchel.normmax(x.detach())
        fenchel.entmax(x, 1.5).sum().backward()

    choices = fenchel.explain(attend_and_learn, X.clone().requires_grad_())
    names = [(choice.operator, choice.implementation) for choice in choices]
    assert names == [("normmax", "cpu"), ("entmax", "cpu"), ("entmax_backward", "cpu")]
    assert choices[0].reason == "a CPU tensor of torch.float32 runs on the Numba kernel"


def test_explain_passes_arguments_on_and_raises_what_the_call_raises():
    assert fenchel.explain(fenchel.entmax, X, alpha=1.2, dim=0)
    with pytest.raises(fenchel.FenchelError, match="dim must be an integer in"):
        fenchel.explain(fenchel.entmax, X, dim=7)
    assert [str(choice) for choice in fenchel.explain(abs, -1)] == []
    with pytest.raises(fenchel.FenchelError, match=r"function must be callable, got Tensor"):
        fenchel.explain(fenchel.entmax(X))


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_a_forced_implementation_runs_forward_and_backward(name):
    def step(x):
        with fenchel.implementation(name):
            fenchel.entmax(x, 1.5).square().sum().backward()

    choices = fenchel.explain(step, X.clone().requires_grad_())
    assert {choice.implementation for choice in choices} == {name}
    assert {choice.reason for choice in choices} == {"forced by fenchel.implementation"}
    assert len(choices) == 2


def test_an_operator_without_a_kernel_runs_on_the_reference():
    (choice,) = fenchel.explain(
        dispatch.kernel, "budget", "budget_derivative", X, dispatch.as_it_is
    )
    assert choice.implementation == "reference"
    assert choice.reason == "there is no Numba kernel for budget_derivative"


def test_an_implementation_that_cannot_run_says_why():
    with (
        fenchel.implementation("cpu"),
        pytest.raises(fenchel.FenchelError) as raised,
    ):
        dispatch.kernel("budget", "budget_derivative", X, dispatch.as_it_is)
    assert str(raised.value) == (
        "budget_derivative cannot run on the implementation 'cpu': "
        "there is no Numba kernel for budget_derivative"
    )


def test_forcing_ends_with_its_block_even_after_an_error():
    with fenchel.implementation("reference"):
        with fenchel.implementation("cpu"):
            pass
        with pytest.raises(RuntimeError), fenchel.implementation("cpu"):
            raise RuntimeError
        (choice,) = fenchel.explain(fenchel.sparsemax, X)
        assert choice.implementation == "reference"
    (choice,) = fenchel.explain(fenchel.sparsemax, X)
    assert choice.implementation == "cpu"


def test_forcing_concerns_one_thread_alone():
    seen = []

    def look() -> None:
        seen.extend(fenchel.explain(fenchel.sparsemax, X))

    with fenchel.implementation("reference"):
        other = threading.Thread(target=look)
        other.start()
        other.join()
    assert [choice.implementation for choice in seen] == ["cpu"]


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_every_implementation_agrees_with_the_default(each, implementation):
    x = X.to(torch.get_default_device(), torch.float64)
    expected = each(x)
    for name in (implementation, "reference"):
        with running_on(name):
            torch.testing.assert_close(each(x), expected, rtol=0, atol=1e-10)


def test_meta_tensors_are_served_without_a_kernel():
    assert fenchel.explain(fenchel.entmax, X.to("meta")) == []
