"""The CPU kernel of attention: every option against all weights in float64, exactness, and its limits."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import fenchel
from fenchel.kernels.reference import attention as reference
from fenchel.mechanisms.functional import attention, attention_weights

ALPHAS = (0.7, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 3.0)


def draw_options(data: st.DataObject, batch: int, heads: int, queries: int, keys: int) -> dict:
    """Any combination of the options that `attention` takes, in float64."""
    options: dict = {"alpha": data.draw(st.sampled_from(ALPHAS))}
    if data.draw(st.booleans()):
        shape = data.draw(st.sampled_from([(heads, 1, 1), (heads, queries, 1)]))
        options["alpha"] = torch.empty(shape, dtype=torch.float64).uniform_(1.05, 2)
        options["alpha"].requires_grad_()
    shape = data.draw(st.sampled_from([(keys,), (queries, 1), (batch, 1, queries, keys)]))
    kind = data.draw(st.sampled_from(["none", "boolean", "bias"]))
    if kind == "boolean":
        options["mask"] = torch.rand(shape) < 0.6
    elif kind == "bias":
        options["mask"] = torch.randn(shape, dtype=torch.float64).requires_grad_()
    if data.draw(st.booleans()):
        options["lengths"] = torch.randint(0, keys + 1, (batch,))
    if data.draw(st.booleans()):
        options["is_causal"] = True
        options["window"] = data.draw(st.sampled_from([None, 0, 3, 40]))
    return options


def gradients(output: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    direction = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    return list(torch.autograd.grad(output, tensors, direction))


@given(data=st.data())
def test_every_option_gives_what_the_reference_gives(data: st.DataObject) -> None:
    batch, shared = data.draw(st.integers(1, 2)), data.draw(st.sampled_from([1, 3]))
    heads = 2 * shared
    queries, keys = data.draw(st.sampled_from([(1, 70), (3, 150), (45, 45), (140, 33)]))
    depth, size = data.draw(st.sampled_from([(3, 5), (16, 40)]))
    torch.manual_seed(data.draw(st.integers(0, 2**31)))
    spread = data.draw(st.sampled_from([0.0, 0.1, 1.0, 8.0]))
    q = spread * torch.randn(batch, queries, heads, depth, dtype=torch.float64).transpose(1, 2)
    k = torch.randn(batch, 2, keys, 2 * depth, dtype=torch.float64)[..., ::2]
    v = torch.randn(1, 2, keys, size, dtype=torch.float64)
    options = draw_options(data, batch, heads, queries, keys)
    operands = [x.requires_grad_() for x in (q, k, v)]
    wanted = operands + [
        x for x in options.values() if isinstance(x, Tensor) and x.is_floating_point()
    ]
    ours = attention(q, k, v, enable_gqa=True, **options)
    with fenchel.implementation("reference"):
        expected = attention(q, k, v, enable_gqa=True, **options)
        expected_gradients = gradients(expected, wanted)
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)
    for mine, other in zip(gradients(ours, wanted), expected_gradients, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)


def operands(
    queries: int, keys: int, *, heads: int = 2, size: int = 64, spread: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(queries + keys)
    q = spread * torch.randn(1, heads, queries, size)
    return q, torch.randn(1, heads, keys, size), torch.randn(1, heads, keys, size)


def relative_error(ours: Tensor, exact: Tensor) -> float:
    return float((ours.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize("alpha", [1.1, 1.25, 1.5, 1.75, 2.0, 3.0])
@pytest.mark.parametrize("keys", [64, 1024])
def test_errors_are_at_most_twice_those_of_softmax_attention(alpha: float, keys: int) -> None:
    q, k, v = operands(keys, keys)
    wide = [x.double() for x in (q, k, v)]
    softmax = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    exact = F.scaled_dot_product_attention(*wide, is_causal=True)
    ours = attention(q, k, v, alpha=alpha, is_causal=True)
    with fenchel.implementation("reference"):
        expected = attention(*wide, alpha=alpha, is_causal=True)
    assert relative_error(ours, expected) <= 2 * relative_error(softmax, exact)


@pytest.mark.parametrize("alpha", [1.25, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("spread", [1.0, 4.0])
def test_no_key_of_the_support_is_dropped(alpha: float, spread: float) -> None:
    """Supports are those in float64, except for keys within 1e-6 of the edge, relative to the scores."""
    q, k, _ = operands(300, 2000, spread=spread)
    ours = attention_weights(q, k, alpha=alpha, is_causal=True).to_dense() > 0
    options = reference.Options(alpha, None, None, True, -1, 1 / 8)
    scores = reference.scores(q.double(), k.double(), options)
    hidden = ~torch.ones(300, 2000, dtype=torch.bool).tril(1700)
    scores = scores.masked_fill(hidden, -math.inf)
    p = fenchel.entmax(scores, alpha)
    t = (alpha - 1) * (scores - scores.amax(-1, keepdim=True))
    inside = torch.where(p > 0, p ** (alpha - 1) - t, 0).amax(-1, keepdim=True)
    distance = ((t + inside) / (alpha - 1)).abs()
    differs = ours != (p > 0)
    assert bool((distance[differs] <= 1e-6 * scores[~hidden.expand_as(scores)].abs().max()).all())
    assert differs.float().mean() < 1e-4


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.5, 3.0])
def test_supports_that_outgrow_the_lists_are_exact(alpha: float) -> None:
    """Some queries see equal scores, so that all keys are in their supports."""
    q, k, v = operands(70, 1500, size=16)
    q[:, :, ::3] = 0
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    ours = attention(*wide, alpha=alpha)
    with fenchel.implementation("reference"):
        expected = attention(*wide, alpha=alpha)
        expected_gradients = gradients(expected, wide)
    torch.testing.assert_close(ours, expected)
    for mine, other in zip(gradients(ours, wide), expected_gradients, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("alpha", [1.02, 1.5])
def test_results_do_not_depend_on_the_number_of_threads(alpha: float) -> None:
    tensors = [x.requires_grad_() for x in operands(200, 600, heads=1, size=16)]
    bias = torch.randn(200, 600, requires_grad=True)
    results, threads = [], torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            output = attention(*tensors, alpha=alpha, mask=bias)
            results.append([output, *gradients(output, [*tensors, bias])])
    finally:
        torch.set_num_threads(threads)
    for result in results[1:]:
        for mine, first in zip(result, results[0], strict=True):
            assert torch.equal(mine, first)


def test_several_python_threads_may_call_at_once() -> None:
    tensors = [x.requires_grad_() for x in operands(150, 300)]

    def call(_: int) -> list[Tensor]:
        return gradients(attention(*tensors, is_causal=True), tensors)

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(call, range(8))
    for other in others:
        assert all(torch.equal(x, y) for x, y in zip(first, other, strict=True))


@pytest.mark.parametrize("queries", [1, 40])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_that_is_no_number_makes_its_row_nan(queries: int, value: float) -> None:
    q, k, v = operands(queries, 90, size=8)
    q[0, 0, 0, 0] = value
    output = attention(q, k, v)
    assert bool(output[0, 0, 0].isnan().all())
    assert bool(output[0, 1].isfinite().all() and output[0, 0, 1:].isfinite().all())


@pytest.mark.parametrize("is_causal", [False, True])
def test_alpha_one_is_softmax_attention_with_all_its_derivatives(is_causal: bool) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(1, 2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, alpha=1, is_causal=is_causal)

    expected = F.scaled_dot_product_attention(*tensors, is_causal=is_causal)
    torch.testing.assert_close(call(*tensors), expected)
    assert torch.autograd.gradcheck(call, tensors, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(call, tensors)


def test_checkpointing_computes_the_same_gradients() -> None:
    tensors = [x.requires_grad_() for x in operands(50, 90, size=8)]
    expected = gradients(attention(*tensors), tensors)
    again = gradients(checkpoint(attention, *tensors, use_reentrant=False), tensors)
    assert all(torch.equal(x, y) for x, y in zip(again, expected, strict=True))


def test_an_exported_program_attends() -> None:
    class Attend(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
            return attention(q, k, v, is_causal=True, window=9, lengths=lengths)

    arguments = (*operands(40, 60, size=8), torch.tensor([33]))
    exported = torch.export.export(Attend(), arguments)
    torch.testing.assert_close(exported.module()(*arguments), Attend()(*arguments))


def test_explain_names_the_kernel() -> None:
    q, k, v = (x.requires_grad_() for x in operands(5, 7))
    choices = fenchel.explain(lambda: attention(q, k, v).sum().backward())
    assert [(each.operator, each.implementation) for each in choices] == [
        ("attention", "cpu"),
        ("attention_backward", "cpu"),
    ]


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_the_weights_come_with_the_output(alpha: float) -> None:
    q, k, v = operands(20, 300, size=8)
    output, weights = attention(q, k, v, alpha=alpha, return_weights=True)
    torch.testing.assert_close(weights.to_dense() @ v, output)
    assert torch.equal(output, attention(q, k, v, alpha=alpha))
