"""`attention` takes the names of `F.scaled_dot_product_attention`, with their meaning."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck

import fenchel
from fenchel.mechanisms.functional import attention, attention_weights

B, H, LQ, LK, E = 2, 4, 5, 7, 3


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def operands(*, keys: int = LK, kv_heads: int = H, size: int = E) -> dict[str, Tensor]:
    shapes = {"query": (H, LQ, E), "key": (kv_heads, keys, E), "value": (kv_heads, keys, size)}
    return {
        name: draw(B, *shape, seed=i).requires_grad_()
        for i, (name, shape) in enumerate(shapes.items())
    }


VISIBLE = (draw(LQ, LK) < 0.5) | (torch.arange(LK) == 2)
CALLS = {
    "names": (LK, H, {}),
    "boolean attn_mask": (LK, H, {"attn_mask": VISIBLE}),
    "attn_mask a batch item": (LK, H, {"attn_mask": VISIBLE[0].expand(B, 1, 1, LK)}),
    "real attn_mask": (LK, H, {"attn_mask": draw(H, LQ, LK)}),
    "attn_mask with -inf": (LK, H, {"attn_mask": draw(LQ, LK).masked_fill(~VISIBLE, -math.inf)}),
    "dropout_p": (LK, H, {"dropout_p": 0.0}),
    "is_causal": (LQ, H, {"is_causal": True}),
    "scale": (LK, H, {"scale": 0.3}),
    "enable_gqa": (LK, 2, {"enable_gqa": True}),
    "all": (
        LK,
        2,
        {
            "attn_mask": VISIBLE,
            "dropout_p": 0.0,
            "is_causal": False,
            "scale": 0.7,
            "enable_gqa": True,
        },
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_call_serves_both_at_alpha_one(name):
    keys, kv_heads, options = CALLS[name]
    tensors = operands(keys=keys, kv_heads=kv_heads)
    expected = F.scaled_dot_product_attention(**tensors, **options)
    ours = attention(**tensors, alpha=1.0, **options)
    torch.testing.assert_close(ours, expected)
    direction = draw(*expected.shape)
    inputs = tuple(tensors.values())
    for mine, other in zip(
        torch.autograd.grad(ours, inputs, direction),
        torch.autograd.grad(expected, inputs, direction),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("mask", [VISIBLE, draw(LQ, LK)], ids=["boolean", "real"])
def test_attn_mask_is_another_name_of_mask(mask):
    q, k, v = operands().values()
    assert torch.equal(attention(q, k, v, attn_mask=mask), attention(q, k, v, mask=mask))
    named, ours = attention_weights(q, k, attn_mask=mask), attention_weights(q, k, mask=mask)
    assert torch.equal(named.to_dense(), ours.to_dense())
    assert torch.equal(attention_weights(query=q, key=k, mask=mask).to_dense(), ours.to_dense())


def test_attn_mask_has_a_gradient_and_may_be_combined_with_is_causal():
    tensors, bias = operands(), draw(LQ, LK).requires_grad_()
    through_both = [
        torch.autograd.grad(attention(**tensors, is_causal=True, **{name: bias}).sum(), bias)[0]
        for name in ("mask", "attn_mask")
    ]
    assert through_both[0].abs().sum() > 0
    assert torch.equal(*through_both)


def weights_of(dropout_p: float = 0.0, *, alpha: float = 1.5, copies: int = 1) -> Tensor:
    """Weights (copies, H, LQ, LK), read off as averages of the unit vectors."""
    tensors = operands()
    q, k = (2 * tensors[name][:1].expand(copies, -1, -1, -1) for name in ("query", "key"))
    v = torch.eye(LK, dtype=torch.float64).expand(copies, H, LK, LK)
    return attention(q, k, v, alpha=alpha, dropout_p=dropout_p).detach()


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_weights_over_one_minus_p_or_drops_them(p, alpha):
    torch.manual_seed(0)
    # So small a probability drops nothing, and computes all weights as the larger ones do.
    weights = weights_of(1e-300, alpha=alpha, copies=50)
    dropped = weights_of(p, alpha=alpha, copies=50)
    kept = dropped != 0
    assert (kept <= (weights != 0)).all()
    assert kept.any()
    assert (kept != (weights != 0)).any()
    one_rounding = {"rtol": 2 * torch.finfo(torch.float64).eps, "atol": 0.0}
    expected = (weights / (1 - p))[kept]
    torch.testing.assert_close(dropped[kept], expected, **one_rounding)
    of_kernel = weights_of(alpha=alpha).expand_as(weights)
    torch.testing.assert_close(of_kernel, weights, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_mean_over_draws_of_dropout_is_the_attention(p):
    """Hoeffding: the share of draws that keep an entry errs by t with probability ≤ 2 exp(−2nt²)."""
    torch.manual_seed(0)
    copies, weights = 10_000, weights_of()
    mean = weights_of(p, copies=copies).mean(0, keepdim=True)
    share = math.sqrt(math.log(2 * weights.numel() / 1e-9) / (2 * copies))
    assert ((mean - weights).abs() <= weights * (share / (1 - p) + 1e-12)).all()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_has_the_values_of_pytorch_at_alpha_one(p):
    torch.manual_seed(0)
    tensors = operands() | {"value": torch.eye(LK, dtype=torch.float64).expand(B, H, LK, LK)}
    full = F.scaled_dot_product_attention(**tensors) / (1 - p)
    for dropped in (
        F.scaled_dot_product_attention(**tensors, dropout_p=p),
        attention(**tensors, alpha=1.0, dropout_p=p),
    ):
        kept = dropped != 0
        assert kept.any()
        assert not kept.all()
        torch.testing.assert_close(dropped[kept], full[kept])


def test_dropout_has_derivatives():
    tensors = operands()
    bias = draw(H, LQ, LK).requires_grad_()
    alpha = torch.tensor([1.1, 1.4, 1.6, 1.9], dtype=torch.float64, requires_grad=True)

    def call(q, k, v, bias, alpha):
        torch.manual_seed(0)
        return attention(q, k, v, alpha=alpha, attn_mask=bias, dropout_p=0.4)

    assert gradcheck(call, (*tensors.values(), bias, alpha), check_forward_ad=True)


def test_a_dropout_of_zero_draws_nothing():
    q, k, v = operands().values()
    before = torch.get_rng_state()
    result = attention(q, k, v, dropout_p=0.0)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(result, attention(q, k, v))
    attention(q, k, v, dropout_p=0.1)
    assert not torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dropout_in_half_precision_is_rounded_once(dtype):
    q, k, v = (x.detach().to(dtype) for x in operands().values())
    torch.manual_seed(0)
    single = attention(q.float(), k.float(), v.float(), dropout_p=0.5)
    torch.manual_seed(0)
    assert torch.equal(attention(q, k, v, dropout_p=0.5), single.to(dtype))


def test_every_name_compiles_whole():
    def step(query, key, value, mask, p):
        return attention(query=query, key=key, value=value, attn_mask=mask, dropout_p=p)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    tensors = operands(size=LK)
    tensors["value"] = torch.eye(LK, dtype=torch.float64).expand(B, H, LK, LK)
    full = step(**tensors, mask=VISIBLE, p=0.0)
    for p in (0.0, 0.25, 0.5):
        dropped = compiled(**tensors, mask=VISIBLE, p=p)
        kept = dropped != 0
        assert kept.any()
        torch.testing.assert_close(dropped[kept], full[kept] / (1 - p))


Q, K, V = (torch.zeros(2, 4, n, 3) for n in (5, 7, 7))
MASK = torch.ones(5, 7, dtype=torch.bool)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mask": MASK, "attn_mask": MASK}, "mask and attn_mask cannot be combined"),
        ({"attn_mask": MASK.long()}, "a boolean or a floating-point tensor, got torch.int64"),
        ({"attn_mask": MASK[:, :6]}, r"mask must have a shape that broadcasts .* got \(5, 6\)"),
        ({"dropout_p": 1.0}, r"dropout_p must be a number in \[0, 1\), got 1.0"),
        ({"dropout_p": 1}, r"dropout_p must be a number in \[0, 1\), got 1"),
        ({"dropout_p": -0.1}, r"dropout_p must be a number in \[0, 1\), got -0.1"),
        ({"dropout_p": math.nan}, r"dropout_p must be a number in \[0, 1\), got nan"),
        ({"dropout_p": "0.1"}, r"dropout_p must be a number in \[0, 1\), got '0.1'"),
        ({"dropout_p": True}, r"dropout_p must be a number in \[0, 1\), got True"),
        ({"query": Q}, "q and query cannot be combined"),
        ({"value": V}, "v and value cannot be combined"),
    ],
)
def test_a_broken_rule_is_named(arguments, message):
    with pytest.raises(fenchel.FenchelError, match=message):
        attention(**{"q": Q, "k": K, "v": V, **arguments})
    if "dropout_p" not in arguments and "value" not in arguments:
        with pytest.raises(fenchel.FenchelError, match=message):
            attention_weights(**{"q": Q, "k": K, **arguments})
