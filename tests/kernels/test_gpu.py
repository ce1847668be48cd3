"""What only a GPU can show: long rows, streams, graphs, no waiting, no memory beyond what is needed."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import fenchel
from tests.accuracy import assert_rounded_once, assert_within
from tests.implementations import GPU, parameters, waiting_is_an_error
from tests.kernels.peaked_rows import peaked_rows

ACCURACY = 2e-7
WIDTHS = (128, 1024, 8192, 32768, 131_072, 262_144)
ALPHAS = (1.5, 2.0, 1.3, 1.75, 3.0, "rows")
PEAKED_ALPHAS = (0.5, 0.8, 0.95, 1.08, 1.1, 1.19, 1.3, 1.4, 1.44, 1.46, 1.5, 1.6, 1.9, 2.0, 2.5)
MIB = 2**20


@pytest.fixture(params=parameters(GPU), autouse=True)
def implementation(request):
    return request.param


def exponent(alpha: float | str, rows: int) -> float | Tensor:
    """A number, or one a row on both sides of 2."""
    return torch.linspace(1.2, 2.6, rows).unsqueeze(-1) if isinstance(alpha, str) else alpha


def exactly(function: Callable[..., Tensor], *args: object, **kwargs: object) -> Tensor:
    wide = [a.double() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args]
    with fenchel.implementation("reference"):
        return function(*wide, **kwargs)


@pytest.mark.parametrize("scale", [1.0, 0.01, 5.0])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("columns", WIDTHS)
def test_rows_of_every_width_are_exact_in_float32(columns, alpha, scale):
    x, value = scale * torch.randn(6, columns), exponent(alpha, 6)
    p = fenchel.entmax(x, value)
    assert_within(p, exactly(fenchel.entmax, x, value), ACCURACY)
    assert_within(p.double().sum(-1), torch.ones(6), 1e-6)


@pytest.mark.parametrize("alpha", PEAKED_ALPHAS)
@pytest.mark.parametrize("columns", [32768, 131_072])
def test_peaked_long_rows_are_exact_in_float32(columns, alpha):
    """For an alpha that float32 holds: at the edge of a support p moves by more than alpha does."""
    alpha = torch.tensor(alpha).item()
    x = peaked_rows(columns, alpha, 8)
    expected = exactly(fenchel.entmax, x, alpha)
    assert_within(fenchel.entmax(x, alpha), expected, ACCURACY)
    each = torch.full((len(x), 1), alpha, dtype=torch.float64)
    assert_within(fenchel.entmax(x, each), expected, ACCURACY)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("columns", WIDTHS)
def test_rows_of_every_width_are_rounded_once_in_half_precision(columns, alpha, dtype):
    x, value = torch.randn(4, columns).to(dtype), exponent(alpha, 4)
    assert_rounded_once(fenchel.entmax(x, value), exactly(fenchel.entmax, x, value))


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e4, 1e30])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("columns", [100, 20_000, 100_000])
def test_huge_and_tiny_scores_are_exact(columns, alpha, scale):
    x, value = scale * torch.randn(3, columns), exponent(alpha, 3)
    assert_within(fenchel.entmax(x, value), exactly(fenchel.entmax, x, value), ACCURACY)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("columns", WIDTHS)
def test_gradients_of_rows_of_every_width_are_those_of_the_reference(columns, alpha):
    x, direction = torch.randn(4, columns, requires_grad=True), torch.randn(4, columns)
    value = torch.as_tensor(exponent(alpha, 4)).expand(4, 1).clone().requires_grad_()
    p = fenchel.entmax(x, value)
    slopes = torch.autograd.grad(p, (x, value), direction)
    # From the same p: at the edge of the support its last bit may decide about a gradient.
    backward = torch.ops.fenchel.entmax_backward_alpha
    for actual, expected in zip(
        slopes, exactly(backward, direction, p.detach(), value.detach(), -1), strict=True
    ):
        assert_within(actual, expected, 2e-6 * max(expected.abs().max().item(), 1.0))


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
@pytest.mark.parametrize("alpha", [1.5, 1.3, 3.0, "heads"])
def test_any_dim_with_a_broadcast_mask(dim, alpha):
    x = torch.randn(8, 12, 50, 300)
    mask = torch.rand(8, 1, 50, 300) < 0.6
    value = torch.tensor([1.1, 1.5, 2.0, 2.5] * 3).view(12, 1, 1) if alpha == "heads" else alpha
    if alpha == "heads" and dim == 1:
        value = torch.linspace(1.1, 2.5, 50).view(50, 1)
    expected = exactly(fenchel.entmax, x, value, dim=dim, mask=mask)
    assert_within(fenchel.entmax(x, value, dim, mask=mask), expected, ACCURACY)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    fenchel.entmax(x, value, dim, mask=mask)
    taken = torch.cuda.max_memory_allocated() - before
    assert taken <= x.nbytes + MIB  # the result, and neither a copy nor a mask of its size


def test_a_tensor_may_have_more_entries_than_fit_in_32_bits():
    rows, columns = 2**16 + 8, 2**15 + 8
    x = torch.empty(rows, columns, dtype=torch.bfloat16)
    x[-4:] = torch.randn(4, columns).bfloat16()
    x[:-4] = 0.0
    x.requires_grad_()
    p = fenchel.entmax(x, 1.5)
    expected = exactly(fenchel.entmax, x[-4:])
    assert x.numel() > 2**31
    assert_rounded_once(p[-4:], expected)
    (slope,) = torch.autograd.grad(p, x, x)
    alone = x[-4:].detach().requires_grad_()
    (slope_alone,) = torch.autograd.grad(fenchel.entmax(alone, 1.5), alone, alone)
    assert torch.equal(slope[-4:], slope_alone)


def test_a_tensor_may_have_more_rows_than_fit_in_32_bits():
    x = torch.zeros(2**31 + 8, 1, dtype=torch.bfloat16)
    assert fenchel.entmax(x, 1.5).eq(1).all()


Step = Callable[[Tensor, Tensor], tuple[Tensor, ...]]


def of_map(alpha: float | str, *, masked: bool) -> Step:
    def step(x: Tensor, _: Tensor) -> tuple[Tensor, ...]:
        value = exponent(alpha, x.shape[0])
        leaves = (x, value.requires_grad_()) if isinstance(value, Tensor) else (x,)
        p = fenchel.entmax(x, value, mask=x > -1.0 if masked else None)
        return p, *torch.autograd.grad(p, leaves, x.detach())

    return step


def of_loss(alpha: float | str, **options: object) -> Step:
    def step(x: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        value = exponent(alpha, x.shape[0])
        leaves = (x, value.requires_grad_()) if isinstance(value, Tensor) else (x,)
        loss = fenchel.entmax_loss(x, target, value, **options)
        return loss, *torch.autograd.grad(loss, leaves)

    return step


def of_layer(x: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """With the rows as hidden states, and some of them as the weight of 32 classes."""
    weight = (x.detach()[:32] / math.sqrt(x.shape[-1])).requires_grad_()
    loss = fenchel.linear_entmax_loss(x, weight, target % 32, chunk_rows=16)
    return loss, *torch.autograd.grad(loss, (x, weight))


def of_large_layer(x: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """So many classes that the gradient of the weight is made of the entries that are not zero."""
    classes = 9000
    weight = torch.linspace(0, 40 * classes, 64 * classes).sin().view(classes, 64).bfloat16()
    weight.requires_grad_()
    hidden = x[:, :64].bfloat16()
    loss = fenchel.linear_entmax_loss(hidden, weight, target % classes, chunk_rows=16)
    return loss, *torch.autograd.grad(loss, (x, weight))


def of_structured(function: Callable[..., Tensor], above: float = 0.0) -> Step:
    def step(x: Tensor, _: Tensor) -> tuple[Tensor, ...]:
        strength = (above + torch.linspace(0.01, 0.1, x.shape[0])).unsqueeze(-1).requires_grad_()
        p = function(x, strength, mask=x > -1.0)
        return p, *torch.autograd.grad(p, (x, strength), x.detach())

    return step


STEPS: dict[str, Step] = {
    "sparsemax": of_map(2.0, masked=False),
    "entmax": of_map(1.5, masked=True),
    "entmax with powers": of_map(1.3, masked=False),
    "entmax beyond two": of_map(3.0, masked=False),
    "entmax with an alpha a row": of_map("rows", masked=True),
    "loss": of_loss(1.5),
    "loss with powers": of_loss(1.3, ignore_index=1),
    "loss with an alpha a row": of_loss("rows", reduction="sum"),
    "smoothed loss": of_loss(1.5, label_smoothing=0.1),
    "layer": of_layer,
    "layer with many classes": of_large_layer,
    "fusedmax": of_structured(fenchel.fusedmax),
    "oscarmax": of_structured(fenchel.oscarmax),
    "normmax": of_structured(fenchel.normmax, above=1.5),
    "budget": of_structured(fenchel.budget, above=2.0),
}
on_every_step = pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
on_short_and_long_rows = pytest.mark.parametrize("columns", [1000, 40_000])


def inputs(columns: int) -> tuple[Tensor, Tensor]:
    return torch.randn(64, columns, requires_grad=True), torch.randint(columns, (64,))


@on_short_and_long_rows
@on_every_step
def test_nothing_waits_for_the_device(step, columns):
    x, target = inputs(columns)
    step(x, target)  # compiles
    with waiting_is_an_error():
        step(x, target)


@on_short_and_long_rows
@on_every_step
def test_graphs_capture_forward_and_backward(step, columns):
    x, target = inputs(columns)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step(x, target)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = [each.detach() for each in step(x, target)]  # without what the backward saved
    with torch.no_grad():
        x.copy_(torch.randn_like(x))
        target.copy_(torch.randint(columns, (64,)))
    graph.replay()
    for replayed, expected in zip(captured, step(x, target), strict=True):
        torch.testing.assert_close(replayed, expected, rtol=1e-5, atol=1e-7)


@on_every_step
def test_another_stream_sees_its_own_work(step):
    x, target = inputs(1000)
    expected = step(x, target)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(10_000_000)  # what runs on the wrong stream runs too early
        late = x.detach() + 0.0
        actual = step(late.requires_grad_(), target)
    torch.cuda.current_stream().wait_stream(side)
    for mine, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-7)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two CUDA devices")
@on_every_step
def test_work_is_done_where_the_tensors_are(step):
    """The current device is another one."""
    x, target = inputs(1000)
    expected = step(x, target)
    there = torch.device("cuda", 1 - torch.cuda.current_device())
    x, target = x.detach().to(there).requires_grad_(), target.to(there)
    for _ in range(2):  # the second time by what is remembered of the first
        with there:
            actual = step(x, target)
        for mine, other in zip(actual, expected, strict=True):
            assert mine.device == there
            torch.testing.assert_close(mine, other.to(there), rtol=1e-5, atol=1e-7)


def peak_beyond_inputs(step: Callable[[], object]) -> int:
    step()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step()
    return torch.cuda.max_memory_allocated() - before


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.3])
@pytest.mark.parametrize("classes", [1000, 32_000])
def test_a_loss_needs_no_more_memory_than_cross_entropy(classes, alpha, dtype):
    x = torch.randn(2048, classes, dtype=dtype, requires_grad=True)
    target = torch.randint(classes, (2048,))
    ours = peak_beyond_inputs(lambda: torch.autograd.grad(fenchel.entmax_loss(x, target, alpha), x))
    theirs = peak_beyond_inputs(lambda: torch.autograd.grad(F.cross_entropy(x, target), x))
    assert ours <= theirs


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_needs_a_sixth_of_the_memory_of_its_parts(dtype):
    hidden = torch.randn(4096, 256, dtype=dtype, requires_grad=True)
    weight = (torch.randn(32_000, 256, dtype=dtype) / 16).requires_grad_()
    target = torch.randint(32_000, (4096,))

    def whole() -> tuple[Tensor, ...]:
        loss = fenchel.linear_entmax_loss(hidden, weight, target)
        return torch.autograd.grad(loss, (hidden, weight))

    def parts() -> tuple[Tensor, ...]:
        loss = fenchel.entmax_loss(F.linear(hidden, weight), target)
        return torch.autograd.grad(loss, (hidden, weight))

    for mine, other in zip(whole(), parts(), strict=True):
        scale = other.abs().max().item()
        assert_within(mine, other, (1e-5 if dtype == torch.float32 else 0.05) * scale)
    assert peak_beyond_inputs(whole) <= peak_beyond_inputs(parts) / 6


@pytest.mark.parametrize("scale", [1.0, 1e-4, "rows"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_gradient_of_a_layer_with_many_classes_is_that_of_its_parts(dtype, scale):
    """Rows with few entries that are not zero, with so many that they are multiplied, and both."""
    classes, rows = 9000, 700
    factor = torch.logspace(-4, 0, rows).unsqueeze(-1) if scale == "rows" else scale
    hidden = (factor * torch.randn(rows, 64)).to(dtype).requires_grad_()
    weight = (torch.randn(classes, 64) / 8).to(dtype).requires_grad_()
    target = torch.randint(classes, (rows,))
    target[5] = -100
    loss = fenchel.linear_entmax_loss(hidden, weight, target, reduction="sum", chunk_rows=256)
    plain = fenchel.entmax_loss(F.linear(hidden, weight), target, reduction="sum")
    assert_within(loss, plain, 0.01 * plain.item())
    slopes, expected = (torch.autograd.grad(each, (hidden, weight)) for each in (loss, plain))
    for mine, other in zip(slopes, expected, strict=True):
        assert_within(mine, other, 0.02 * other.abs().max().item())
    hidden.data[3, 1] = math.nan
    loss = fenchel.linear_entmax_loss(hidden, weight, target, reduction="sum", chunk_rows=256)
    assert torch.autograd.grad(loss, weight)[0].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("columns", [10, 100_000])
def test_kernels_serve_every_dtype_but_float64(dtype, columns):
    def learn(x: Tensor, alpha: Tensor) -> None:
        fenchel.entmax(x, alpha).square().sum().backward()
        fenchel.entmax_loss(x, torch.zeros(3, dtype=torch.long), alpha).backward()

    x, alpha = torch.randn(3, columns, dtype=dtype), torch.full((3, 1), 1.5)
    choices = fenchel.explain(learn, x.requires_grad_(), alpha.requires_grad_())
    assert {choice.implementation for choice in choices} == {"triton"}
    (choice,) = fenchel.explain(fenchel.entmax, torch.randn(3, 5, dtype=torch.float64))
    assert choice.implementation == "reference"
    assert math.isfinite(alpha.grad.sum().item())
