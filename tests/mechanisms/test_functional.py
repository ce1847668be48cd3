"""`attention` against PyTorch's at α = 1, and against a loop over queries at every other α."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import fenchel
from fenchel.mechanisms.functional import attention
from tests.implementations import DEFAULT, GPU, parameters

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own use
BATCH, HEADS, LQ, LK, E, EV = 2, 4, 5, 7, 3, 6


def operands(*, kv_heads=HEADS, queries=LQ, keys=LK, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    shapes = [(HEADS, queries, E), (kv_heads, keys, E), (kv_heads, keys, EV)]
    tensors = [torch.randn(BATCH, *s, dtype=torch.float64) for s in shapes]
    return [x.to(dtype).requires_grad_() for x in tensors]


@pytest.fixture(params=parameters(DEFAULT, GPU))
def implementation(request):
    return request.param


def moved(arguments: dict) -> dict:
    """Arguments that were made before the test, where it runs."""
    device = torch.get_default_device()
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in arguments.items()}


def random_mask(*shape: int) -> Tensor:
    visible = random_bias(*shape) < 0.3
    visible[..., 0] = True
    return visible


def random_bias(*shape: int) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(2)
    bias = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
    return bias.to(torch.get_default_device())


@pytest.mark.parametrize(
    ("keys", "arguments"),
    [
        (LK, {}),
        (LK, {"scale": 0.3}),
        (LQ, {"is_causal": True}),
        (LK, {"mask": random_mask(LQ, LK)}),
        (LK, {"mask": random_mask(BATCH, 1, 1, LK)}),
        (LK, {"mask": random_mask(BATCH, HEADS, LQ, LK), "scale": 2.0}),
        (LK, {"mask": random_bias(HEADS, LQ, LK)}),
        (LK, {"mask": random_bias(1, LK).masked_fill(torch.arange(LK) == 3, -math.inf)}),
        (LK, {"enable_gqa": True}),
        (LQ, {"enable_gqa": True, "is_causal": True, "scale": 0.5}),
    ],
)
def test_alpha_one_is_the_attention_of_pytorch(keys, arguments, implementation):
    arguments = moved(arguments)
    q, k, v = operands(keys=keys, kv_heads=2 if arguments.get("enable_gqa") else HEADS)
    theirs = dict(arguments)
    theirs["attn_mask"] = theirs.pop("mask", None)
    expected = F.scaled_dot_product_attention(q, k, v, **theirs)
    ours = attention(q, k, v, alpha=1.0, **arguments)
    torch.testing.assert_close(ours, expected)
    direction = torch.randn_like(expected)
    for mine, other in zip(
        torch.autograd.grad(ours, (q, k, v), direction),
        torch.autograd.grad(expected, (q, k, v), direction),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


def looped(q, k, v, alpha, *, visible, bias=None):
    """One query at a time over the keys that it sees, nothing else."""
    output = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for index in itertools.product(*map(range, q.shape[:-1])):
        seen = visible(*index).nonzero().squeeze(-1)
        if len(seen) == 0:
            continue
        keys, values = k[index[:-1]][seen], v[index[:-1]][seen]
        scores = keys @ q[index] / math.sqrt(E)
        if bias is not None:
            scores = scores + bias.expand(*q.shape[:-1], k.shape[-2])[index][seen]
        output[index] = fenchel.entmax(scores, alpha[index[1]]) @ values
    return output


@pytest.mark.parametrize("alpha", [1.5, 2.0, "heads"])
@pytest.mark.parametrize("queries", [3, LK, LK + 2])
@pytest.mark.parametrize(
    ("arguments", "sees"),
    [
        ({}, lambda n, i, j, shift: True),
        ({"is_causal": True}, lambda n, i, j, shift: j <= i + shift),
        (
            {"is_causal": True, "window": 2},
            lambda n, i, j, shift: i + shift - 2 <= j <= i + shift,
        ),
        ({"is_causal": True, "window": 0}, lambda n, i, j, shift: j == i + shift),
        ({"lengths": torch.tensor([0, 4])}, lambda n, i, j, shift: j < (0, 4)[n]),
        (
            {"is_causal": True, "lengths": torch.tensor([7, 2]), "mask": random_mask(1, LK)},
            lambda n, i, j, shift: (
                j <= i + shift and j < (7, 2)[n] and bool(random_mask(1, LK)[0, j])
            ),
        ),
        (
            {"is_causal": True, "mask": random_bias(HEADS, 1, LK)},
            lambda n, i, j, shift: j <= i + shift,
        ),
    ],
)
def test_each_query_attends_to_what_it_sees(alpha, queries, arguments, sees, implementation):
    arguments = moved(arguments)
    q, k, v = (x.detach() for x in operands(queries=queries))
    per_head = torch.tensor([1.2, 1.5, 1.8, 2.5], dtype=torch.float64)
    per_head = per_head if alpha == "heads" else torch.full((HEADS,), alpha).double()

    def visible(n, h, i):
        return torch.tensor([sees(n, i, j, LK - queries) for j in range(LK)])

    mask = arguments.get("mask")
    bias = mask if mask is not None and mask.dtype != torch.bool else None
    expected = looped(q, k, v, per_head, visible=visible, bias=bias)
    ours = attention(q, k, v, alpha=per_head if alpha == "heads" else alpha, **arguments)
    torch.testing.assert_close(ours, expected)


def test_alpha_may_be_any_tensor_that_broadcasts(implementation):
    q, k, v = operands()
    per_head = torch.tensor([1.2, 1.5, 1.8, 2.5], dtype=torch.float64)
    full = per_head.view(1, HEADS, 1, 1).expand(BATCH, HEADS, LQ, 1)
    expected = attention(q, k, v, alpha=per_head)
    torch.testing.assert_close(attention(q, k, v, alpha=per_head.view(HEADS, 1, 1)), expected)
    torch.testing.assert_close(attention(q, k, v, alpha=full), expected)
    scalar = torch.tensor(1.5)
    torch.testing.assert_close(attention(q, k, v, alpha=scalar), attention(q, k, v))


def test_every_derivative_is_right(implementation):
    q, k, v = operands(queries=3, keys=4)
    alpha = torch.tensor([1.1, 1.4, 1.6, 1.9], dtype=torch.float64, requires_grad=True)
    bias = random_bias(HEADS, 3, 4).requires_grad_()

    def call(q, k, v, alpha, bias):
        return attention(q, k, v, alpha=alpha, mask=bias, is_causal=True)

    assert gradcheck(call, (q, k, v, alpha, bias), check_forward_ad=True)
    assert gradgradcheck(call, (q, k, v, alpha, bias))


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_a_query_with_nothing_to_see_gives_zeros_and_zero_gradient(alpha, implementation):
    q, k, v = operands()
    output = attention(q, k, v, alpha=alpha, lengths=torch.tensor([0, LK]))
    assert (output[0] == 0).all()
    output.sum().backward()
    for tensor in (q, k, v):
        assert (tensor.grad[0] == 0).all()
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype, implementation):
    """Values near one: float32 errors are far below the last place, so one rounding is all."""
    q, k, v = (x.detach() for x in operands(dtype=dtype))
    exact = attention(q.double(), k.double(), v.double(), is_causal=True)
    ours = attention(q, k, v, is_causal=True)
    assert ours.dtype == dtype
    rounding = torch.finfo(dtype).eps / 2
    assert ((ours.double() - exact).abs() <= 1.001 * rounding * exact.abs() + 1e-6).all()


def test_autocast_takes_its_dtype_and_rounds_nothing_inside(implementation):
    q, k, v = (x.detach() for x in operands(dtype=torch.float32))
    halves = [x.bfloat16() for x in (q, k, v)]
    with torch.autocast(q.device.type, dtype=torch.bfloat16):
        ours = attention(q, k, v)
    assert ours.dtype == torch.bfloat16
    assert torch.equal(ours, attention(*halves))


@pytest.mark.filterwarnings("ignore:TensorFloat32")  # advice for matrices larger than these
@pytest.mark.parametrize(("autocast", "backend"), [(False, "inductor"), (True, "aot_eager")])
def test_a_training_step_compiles_whole(autocast, backend, implementation):
    def step(q, k, v, alpha, lengths):
        with torch.autocast(q.device.type, torch.bfloat16, enabled=autocast):
            return attention(q, k, v, alpha=alpha, is_causal=True, window=3, lengths=lengths)

    tensors = operands(dtype=torch.float32)
    alpha = torch.full((HEADS,), 1.3, requires_grad=True)
    lengths = torch.tensor([3, LK])
    eager = step(*tensors, alpha, lengths)
    direction = torch.randn_like(eager)
    expected = torch.autograd.grad(eager, (*tensors, alpha), direction)
    compiled = torch.compile(step, fullgraph=True, backend=backend)(*tensors, alpha, lengths)
    gradients = torch.autograd.grad(compiled, (*tensors, alpha), direction)
    torch.testing.assert_close(compiled, eager)
    for mine, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(mine, other)


def test_one_compiled_function_serves_one_scale_after_another():
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    tensors = operands()
    for scale in (0.5, 0.7, 0.9):
        torch.testing.assert_close(
            compiled(*tensors, scale=scale), attention(*tensors, scale=scale)
        )


def test_vmap_is_a_loop(implementation):
    q, k, v = operands()
    lengths = torch.tensor([3, LK])
    batched = torch.vmap(lambda q, k, v, n: attention(q, k, v, lengths=n, is_causal=True))
    expected = attention(q, k, v, lengths=lengths, is_causal=True)
    torch.testing.assert_close(batched(q, k, v, lengths), expected)


@pytest.mark.parametrize(
    ("q", "k", "v", "shape"),
    [
        ((0, 2, 5, 3), (0, 2, 7, 3), (0, 2, 7, 4), (0, 2, 5, 4)),
        ((2, 2, 0, 3), (2, 2, 7, 3), (2, 2, 7, 4), (2, 2, 0, 4)),
        ((2, 2, 5, 3), (2, 2, 0, 3), (2, 2, 0, 4), (2, 2, 5, 4)),
        ((2, 2, 5, 0), (2, 2, 7, 0), (2, 2, 7, 4), (2, 2, 5, 4)),
        ((5, 3), (7, 3), (7, 4), (5, 4)),
        ((3, 2, 5, 3), (1, 1, 7, 3), (3, 1, 7, 4), (3, 2, 5, 4)),
    ],
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_empty_few_and_broadcast_dimensions(q, k, v, shape, is_causal, implementation):
    q, k, v = torch.randn(q), torch.randn(k), torch.randn(v)
    output = attention(q, k, v, is_causal=is_causal)
    products = q @ k.mT / math.sqrt(max(q.shape[-1], 1))
    visible = torch.ones(products.shape[-2:], dtype=torch.bool)
    last = k.shape[-2] - q.shape[-2]  # the last query sees all keys
    mask = visible.tril(last) if is_causal else None
    expected = fenchel.entmax(products, 1.5, mask=mask) @ v
    assert output.shape == shape
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


Q, K, V = (torch.zeros(2, 4, n, 3) for n in (5, 7, 7))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": [1.0]}, "q must be a torch.Tensor"),
        ({"q": Q.long()}, "q must have a floating-point dtype, got torch.int64"),
        ({"k": K.double()}, r"k must have the dtype of q \(torch.float32\), got torch.float64"),
        ({"k": K.to("meta")}, "k must be on the device of the scores"),
        ({"q": Q[0, 0, 0]}, r"q must have shape \(…, length, size\), got \(3,\)"),
        ({"k": K[0]}, r"k must have as many dimensions as q \(4\), got \(4, 7, 3\)"),
        ({"k": K[..., :2]}, r"k must have the size of q \(E = 3\), got 2"),
        ({"v": V[..., :6, :]}, r"v must have the length of k \(7\), got 6"),
        (
            {"v": V[:, :2]},
            r"must be equal or 1, got q \(2, 4\), k \(2, 4\), v \(2, 2\) \(pass enable_gqa=True",
        ),
        (
            {"k": K[:, :3], "enable_gqa": True},
            r"query heads must be divisible .* got batch and heads \(2, 4\) and \(2, 3\)",
        ),
        ({"k": K[:, :0], "enable_gqa": True}, "query heads must be divisible"),
        (
            {"mask": torch.zeros(5, 7).long()},
            "mask must be a boolean or a floating-point tensor, got torch.int64",
        ),
        (
            {"mask": torch.ones(5, 6).bool()},
            r"mask must have a shape that broadcasts to \(2, 4, 5, 7\), got \(5, 6\)",
        ),
        ({"mask": torch.ones(1, 1, 1, 5, 7)}, "mask must have a shape that broadcasts"),
        ({"mask": [[True]]}, "mask must be a torch.Tensor"),
        ({"mask": torch.zeros(5, 7, device="meta")}, "mask must be on the device of the scores"),
        ({"window": 2}, "is_causal must be True if window is given, got False"),
        ({"window": -1, "is_causal": True}, "window must be a whole number of at least 0, got -1"),
        ({"window": 1.5, "is_causal": True}, "window must be a whole number .* got 1.5"),
        ({"window": True, "is_causal": True}, "window must be a whole number .* got True"),
        (
            {"lengths": torch.tensor([1.0, 2.0])},
            "lengths must be an integer tensor, got torch.float32",
        ),
        ({"lengths": [1, 2]}, "lengths must be an integer tensor, got list"),
        (
            {"lengths": torch.tensor([1, 2, 3])},
            r"lengths must have shape \(2,\), one value per batch entry, got \(3,\)",
        ),
        (
            {"lengths": torch.tensor([1, 8])},
            r"lengths must be between 0 and 7, got \[1, 8\]",
        ),
        ({"lengths": torch.tensor([-1, 7])}, r"lengths must be between 0 .* got \[-1, 7\]"),
        ({"alpha": 0.0}, "alpha must be above 0"),
        ({"alpha": "1.5"}, "alpha must be a number or a tensor"),
        (
            {"alpha": torch.ones(3)},
            r"alpha must have shape \(4,\), one value per head, got \(3,\)",
        ),
        (
            {"alpha": torch.ones(4, 5, 7)},
            r"alpha must have a shape that broadcasts to \(2, 4, 5, 1\), got \(4, 5, 7\)",
        ),
        ({"alpha": torch.tensor([1.0, 1.5, -2.0, 1.0])}, "alpha must be above 0"),
        ({"scale": math.nan}, "scale must be a finite number, got nan"),
        ({"scale": math.inf}, "scale must be a finite number, got inf"),
        ({"scale": "big"}, "scale must be a finite number, got 'big'"),
        ({"v": None}, "v must be a torch.Tensor, got NoneType"),
    ],
)
def test_a_broken_rule_is_named(arguments, message):
    with pytest.raises(fenchel.FenchelError, match=message):
        attention(**{"q": Q, "k": K, "v": V, **arguments})


def test_a_window_may_be_any_integer():
    tensors = operands()
    counted = attention(*tensors, is_causal=True, window=2)
    assert torch.equal(attention(*tensors, is_causal=True, window=np.int64(2)), counted)
