"""`MultiheadAttention` is PyTorch's layer at α = 1, and the functional call at every other."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

import fenchel
from fenchel.mechanisms.exponent import Exponent
from fenchel.mechanisms.multihead import MultiheadAttention

N, L, S, E, H = 3, 4, 5, 8, 2
CAUSAL = torch.ones(L, S).tril(1) == 0


def padding():
    mask = torch.zeros(N, S, dtype=torch.bool)
    mask[1, 3:] = mask[2, 1:] = True
    return mask


def pair(alpha=1.0, **options):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(E, H, dtype=torch.float64, **options)
    ours = MultiheadAttention(E, H, dtype=torch.float64, alpha=alpha, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def inputs(*, batched=True, batch_first=False, kdim=E, vdim=E):
    generator = torch.Generator().manual_seed(1)
    shapes = [(L, E), (S, kdim), (S, vdim)]
    tensors = [torch.randn(N, *s, generator=generator, dtype=torch.float64) for s in shapes]
    if not batched:
        return [x[0] for x in tensors]
    return tensors if batch_first else [x.transpose(0, 1) for x in tensors]


LAYERS = [
    {},
    {"batch_first": True},
    {"bias": False},
    {"kdim": 6, "vdim": 10},
    {"kdim": 6, "vdim": 10, "bias": False, "batch_first": True},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
]
MASKS = [
    {},
    {"attn_mask": CAUSAL},
    {"attn_mask": CAUSAL, "is_causal": True, "need_weights": True},
    {"attn_mask": torch.randn(L, S, dtype=torch.float64)},
    {"attn_mask": torch.randn(N * H, L, S, dtype=torch.float64)},
    {"attn_mask": CAUSAL.expand(N * H, L, S)},
    {"key_padding_mask": padding()},
    {"key_padding_mask": padding(), "attn_mask": CAUSAL},
    {
        "key_padding_mask": padding().double().masked_fill(padding(), -math.inf),
        "attn_mask": torch.randn(L, S, dtype=torch.float64),
    },
]


@pytest.mark.parametrize("options", LAYERS, ids=str)
@pytest.mark.parametrize("masks", MASKS, ids=lambda masks: "-".join(masks) or "plain")
@pytest.mark.parametrize(
    "weights", [{"need_weights": False}, {}, {"average_attn_weights": False}], ids=str
)
def test_alpha_one_is_the_layer_of_pytorch(options, masks, weights):
    theirs, ours = pair(**options)
    sizes = {k: options[k] for k in ("kdim", "vdim", "batch_first") if k in options}
    arguments = {**masks, **weights}
    if arguments.get("is_causal") and not arguments["need_weights"]:
        del arguments["is_causal"]  # there, a hint that CAUSAL is square, which it is not
    expected = theirs(*inputs(**sizes), **arguments)
    result = ours(*inputs(**sizes), **arguments)
    torch.testing.assert_close(result[0], expected[0])
    assert (result[1] is None) == (expected[1] is None)
    if expected[1] is not None:
        torch.testing.assert_close(result[1], expected[1])


@pytest.mark.parametrize("options", LAYERS, ids=str)
@pytest.mark.parametrize(
    "masks", [{}, {"attn_mask": CAUSAL}, {"key_padding_mask": padding()[1]}], ids=list
)
@pytest.mark.parametrize("average", [True, False])
def test_one_sequence_without_batch(options, masks, average):
    theirs, ours = pair(**options)
    sizes = {k: options[k] for k in ("kdim", "vdim") if k in options}
    tensors = inputs(batched=False, **sizes)
    expected = theirs(*tensors, **masks, average_attn_weights=average)
    torch.testing.assert_close(ours(*tensors, **masks, average_attn_weights=average), expected)


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_same_keys_and_same_initialisation(options):
    layers = []
    for layer in (nn.MultiheadAttention, MultiheadAttention):
        torch.manual_seed(3)
        layers.append(layer(E, H, **options))
    theirs, ours = (layer.state_dict() for layer in layers)
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, rtol=0, atol=0)


@pytest.mark.parametrize("alpha", [1.5, 2.0, (1.2, 1.9)])
def test_heads_attend_with_alpha(alpha):
    _, ours = pair(alpha=alpha, batch_first=True)
    q, k, v = inputs(batch_first=True)
    output, weights = ours(q, k, v, average_attn_weights=False)
    matrices, biases = ours.in_proj_weight.chunk(3), ours.in_proj_bias.chunk(3)
    projected = map(nn.functional.linear, (q, k, v), matrices, biases)
    heads = [x.unflatten(-1, (H, -1)).transpose(1, 2) for x in projected]
    scores = heads[0] @ heads[1].mT / math.sqrt(E // H)
    per_head = torch.tensor(alpha if isinstance(alpha, tuple) else (alpha,) * H).double()
    expected = torch.stack([fenchel.entmax(scores[:, h], per_head[h].item()) for h in range(H)], 1)
    torch.testing.assert_close(weights, expected)
    expected = ours.out_proj((expected @ heads[2]).transpose(1, 2).flatten(2))
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(ours(q, k, v, need_weights=False)[0], expected)
    torch.testing.assert_close(
        ours.alpha, per_head if isinstance(alpha, tuple) else alpha, check_dtype=False
    )


def test_learned_alpha_is_trained_and_saved():
    _, ours = pair(alpha="learned")
    torch.testing.assert_close(ours.alpha, torch.full((H,), 1.5).double())
    before = ours.alpha.detach()
    ours(*inputs())[0].square().sum().backward()
    torch.optim.SGD(ours.parameters(), lr=1.0).step()
    assert (ours.alpha != before).all()
    assert ((ours.alpha > 1) & (ours.alpha < 2)).all()
    other = MultiheadAttention(E, H, dtype=torch.float64, alpha="learned")
    other.load_state_dict(ours.state_dict())
    torch.testing.assert_close(other.alpha, ours.alpha)


@pytest.mark.parametrize("options", LAYERS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_attending_to_keys_that_were_projected_one_by_one(options, alpha):
    """As decoding with a cache does: each step adds a key, and its query sees those so far."""
    _, ours = pair(alpha=alpha, **options)
    sizes = {k: options[k] for k in ("kdim", "vdim") if k in options}
    query, key, value = inputs(batch_first=True, **sizes)
    layout = (lambda x: x) if options.get("batch_first") else (lambda x: x.transpose(0, 1))
    arguments = [layout(x) for x in (query, key[:, :L], value[:, :L])]
    expected, weights = ours(*arguments, is_causal=True, average_attn_weights=False)
    keys, values = ours.project_keys(key[:, :0], value[:, :0])
    for step in range(L):
        now = slice(step, step + 1)
        k, v = ours.project_keys(key[:, now], value[:, now])
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        q = ours.project_queries(query[:, now])
        output, seen = ours.attend(q, keys, values, need_weights=True)
        torch.testing.assert_close(output, layout(expected)[:, now])
        torch.testing.assert_close(seen[..., : step + 1], weights[:, :, now, : step + 1])
        torch.testing.assert_close(ours.attend(q, keys, values)[0], output)


def test_cached_keys_can_be_masked():
    _, ours = pair(alpha=1.5, batch_first=True, add_bias_kv=True, add_zero_attn=True)
    query, key, value = inputs(batch_first=True)
    projected = ours.project_queries(query), *ours.project_keys(key, value)
    expected, _ = ours(query, key, value, key_padding_mask=padding())
    visible = ~padding()[:, None, None]
    torch.testing.assert_close(ours.attend(*projected, visible)[0], expected)
    bias = torch.zeros(N, 1, 1, S).double().masked_fill(~visible, -math.inf)
    torch.testing.assert_close(ours.attend(*projected, bias)[0], expected)
    torch.testing.assert_close(
        ours.attend(*projected, visible[:, :, :, :1])[0],
        ours.attend(*projected, visible[:, :, :, :1].expand(-1, -1, -1, S))[0],
    )


@pytest.mark.parametrize("bias", [True, False])
def test_one_tensor_for_all_inputs_is_as_three_equal_ones(bias):
    _, ours = pair(alpha=1.5, bias=bias)
    query, x, _ = inputs()
    torch.testing.assert_close(ours(x, x, x), ours(x, x.clone(), x.clone()))
    torch.testing.assert_close(ours(query, x, x), ours(query, x, x.clone()))
    one = x[:, 0]
    torch.testing.assert_close(ours(one, one, one)[0], ours(x, x, x)[0][:, 0])


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_query_that_may_see_nothing_is_finite_without_weights(alpha, dropout):
    _, ours = pair(alpha=alpha, batch_first=True, dropout=dropout)
    mask = torch.zeros(N, S, dtype=torch.bool)
    mask[1] = True
    output, _ = ours(*inputs(batch_first=True), key_padding_mask=mask, need_weights=False)
    torch.testing.assert_close(output[1], ours.out_proj.bias.expand(L, E))
    output.sum().backward()
    assert all(p.grad.isfinite().all() for p in ours.parameters())


def test_a_learned_alpha_starts_where_it_is_told():
    layer = MultiheadAttention(E, H, alpha="learned", alpha_start=1.25)
    torch.testing.assert_close(layer.alpha, torch.tensor([1.25, 1.25]))
    torch.manual_seed(0)
    layers = [MultiheadAttention(8, 8, alpha="learned", alpha_start="random") for _ in range(500)]
    logits = torch.cat([layer.exponent.logit for layer in layers]).detach()
    assert abs(logits.mean()) < 0.08  # five standard deviations
    assert abs(logits.std() - 1) < 0.06
    torch.manual_seed(0)
    again = MultiheadAttention(8, 8, alpha="learned", alpha_start="random")
    assert torch.equal(again.alpha, layers[0].alpha)
    assert len(again.alpha.unique()) == 8


def test_a_tied_alpha_is_one_for_all_heads():
    layer = MultiheadAttention(E, H, alpha="learned", tie_alpha=True, alpha_start="random")
    assert layer.exponent.logit.shape == (1,)
    assert layer.alpha.shape == (H,)
    assert layer.alpha[0] == layer.alpha[1]
    single = MultiheadAttention(E, H, alpha=layer.alpha[0].item())
    single.load_state_dict(layer.state_dict(), strict=False)
    x = inputs()[0].float()
    torch.testing.assert_close(layer(x, x, x), single(x, x, x))
    layer(x, x, x)[0].square().sum().backward()
    assert layer.exponent.logit.grad.abs() > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_alpha_is_not_rounded_with_the_layer(dtype):
    layer = MultiheadAttention(E, H, alpha="learned")
    with torch.no_grad():
        layer.exponent.logit.copy_(torch.tensor([0.01, 6.0]))
    before = layer.alpha.detach()
    layer.to(dtype)
    assert layer.in_proj_weight.dtype == dtype
    assert layer.alpha.dtype == torch.float32
    assert torch.equal(layer.alpha, before)
    assert layer.alpha[1] < 2
    fresh = MultiheadAttention(E, H, alpha="learned", dtype=dtype)
    assert fresh.exponent.logit.dtype == torch.float32
    fresh.load_state_dict(layer.state_dict())
    assert torch.equal(fresh.alpha, before)
    constant = MultiheadAttention(E, H, alpha=(1.5025, 1.9)).to(dtype)
    assert constant.alpha.tolist() == pytest.approx([1.5025, 1.9])
    assert layer.double().alpha.dtype == torch.float64


@pytest.mark.parametrize("alpha", ["learned", (1.25, 2.0)])
def test_alpha_of_a_layer_that_is_made_without_memory(alpha):
    expected = MultiheadAttention(8, 2, alpha=alpha)
    layer = MultiheadAttention(8, 2, alpha=alpha, device="meta").to_empty(device="cpu")
    for module in layer.modules():
        if isinstance(module, Exponent):
            module.reset_parameters()
    assert torch.equal(layer.alpha, expected.alpha)


def test_a_learned_alpha_of_a_layer_without_memory_takes_its_start_with_a_checkpoint():
    layer = MultiheadAttention(8, 2, alpha="learned", device="meta")
    layer.load_state_dict(nn.MultiheadAttention(8, 2).state_dict(), assign=True)
    assert layer.alpha.tolist() == [1.5, 1.5]


def test_masks_of_two_kinds_may_be_mixed():
    _, ours = pair(alpha=1.5)
    bias = torch.randn(L, S, dtype=torch.float64)
    as_bias = torch.zeros(N, S).double().masked_fill(padding(), -math.inf)
    expected = ours(*inputs(), attn_mask=bias, key_padding_mask=as_bias)
    result = ours(*inputs(), attn_mask=bias, key_padding_mask=padding())
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True, "add_zero_attn": True}])
def test_causal_needs_no_mask_and_aligns_bottom_right(options):
    _, ours = pair(alpha=1.5, **options)
    result = ours(*inputs(), is_causal=True)
    torch.testing.assert_close(result, ours(*inputs(), attn_mask=CAUSAL))


def test_a_sequence_that_is_all_padding_returns_the_bias():
    _, ours = pair(alpha=1.5, batch_first=True)
    mask = torch.zeros(N, S, dtype=torch.bool)
    mask[1] = True
    output, weights = ours(*inputs(batch_first=True), key_padding_mask=mask)
    torch.testing.assert_close(output[1], ours.out_proj.bias.expand(L, E))
    assert (weights[1] == 0).all()


def test_dropout_drops_weights_in_training_only():
    _, ours = pair(alpha=1.5, dropout=0.5)
    full = ours.eval()(*inputs())[1]
    dropped = ours.train()(*inputs(), average_attn_weights=False)[1]
    kept = dropped != 0
    assert not torch.equal(dropped.mean(1), full)
    expected = 2 * ours.eval()(*inputs(), average_attn_weights=False)[1]
    torch.testing.assert_close(dropped[kept], expected[kept])


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_is_that_of_the_function(need_weights):
    _, ours = pair(alpha=1.5, dropout=0.5, batch_first=True)
    ours.out_proj = nn.Identity()  # the heads side by side
    query, key, value = inputs(batch_first=True)
    torch.manual_seed(0)
    result = ours(query, key, value, need_weights=need_weights)[0]
    torch.manual_seed(0)
    expected = fenchel.attention(*ours.project(query, key, value), dropout_p=0.5)
    torch.testing.assert_close(result, expected.transpose(1, 2).flatten(2))


def test_a_boolean_mask_forbids_here_and_permits_in_the_function():
    _, ours = pair(alpha=1.5, batch_first=True)
    query, key, value = inputs(batch_first=True)
    _, weights = ours(query, key, value, attn_mask=CAUSAL, average_attn_weights=False)
    q, k, _ = ours.project(query, key, value)
    expected = fenchel.attention_weights(q, k, attn_mask=~CAUSAL)
    torch.testing.assert_close(weights, expected.to_dense())


@pytest.mark.parametrize("shape", [(L, S), (N * H, L, S)])
def test_a_causal_mask_of_the_other_convention_is_refused(shape):
    _, ours = pair()
    with pytest.raises(fenchel.FenchelError, match=r"must be True above the diagonal.*~attn_mask"):
        ours(*inputs(), attn_mask=(~CAUSAL).expand(shape), is_causal=True)
    assert ours(*inputs(), attn_mask=~CAUSAL)[0].isfinite().all()
    empty = inputs()[0][:0], *inputs()[1:]
    assert ours(*empty, attn_mask=CAUSAL[:0], is_causal=True)[0].shape == (0, N, E)


@pytest.mark.parametrize("training", [True, False])
def test_inside_a_transformer_encoder(training):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(E, H, 16, dropout=0.0, batch_first=True)
    sparse = copy.deepcopy(layer)
    sparse.self_attn = MultiheadAttention(E, H, batch_first=True, alpha=1.0)
    sparse.self_attn.load_state_dict(layer.self_attn.state_dict())
    x, mask = torch.randn(N, S, E), padding()
    encoders = [nn.TransformerEncoder(a, 2, enable_nested_tensor=False) for a in (layer, sparse)]
    with torch.set_grad_enabled(training):
        expected, dense = (e.train(training)(x, src_key_padding_mask=mask) for e in encoders)
        torch.testing.assert_close(dense[~mask], expected[~mask], rtol=1e-4, atol=1e-5)
        encoders[1].layers[0].self_attn.exponent.value = 2.0
        assert not torch.allclose(encoders[1](x, src_key_padding_mask=mask)[~mask], dense[~mask])


def test_a_training_step_compiles_whole():
    _, ours = pair(alpha="learned", batch_first=True, add_zero_attn=True)

    def step(q, k, v, mask):
        return ours(q, k, v, key_padding_mask=mask, need_weights=False)[0].square().sum()

    tensors = inputs(batch_first=True)
    parameters = tuple(ours.parameters())
    expected = torch.autograd.grad(step(*tensors, padding()), parameters)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")(*tensors, padding())
    for mine, other in zip(torch.autograd.grad(compiled, parameters), expected, strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_and_autocast(dtype):
    _, ours = pair(alpha="learned")
    exact, weights = ours(*inputs())
    close = {"rtol": 0, "atol": 64 * torch.finfo(dtype).eps, "check_dtype": False}
    with torch.autocast("cpu", dtype=dtype):
        cast = ours.float()(*(x.float() for x in inputs()))
    half = ours.to(dtype)(*(x.to(dtype) for x in inputs()))
    for result in (cast, half):
        assert result[0].dtype == result[1].dtype == dtype
        torch.testing.assert_close(result[0], exact, **close)
        torch.testing.assert_close(result[1], weights, **close)


X, KEY = torch.zeros(L, N, E), torch.zeros(S, N, E)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": X[..., :4]}, "query must have size 8, got 4"),
        ({"query": X[0]}, r"key must have as many dimensions as query \(2\), got \(5, 3, 8\)"),
        ({"query": X[0, 0]}, r"query must have 2 dimensions, or 3 for a batch, got \(8,\)"),
        ({"query": X[:, :2]}, r"the same batch size.* = \(2, 4\), \(3, 5\), \(3, 5\)"),
        ({"value": KEY[:3]}, r"the same length.* = \(3, 4\), \(3, 5\), \(3, 3\)"),
        (
            {"attn_mask": torch.zeros(L, S).long()},
            "attn_mask must be a boolean tensor .* or a floating-point tensor .* got torch.int64",
        ),
        (
            {"attn_mask": torch.zeros(S, L)},
            r"attn_mask must have shape \(4, 5\) or \(6, 4, 5\), got \(5, 4\)",
        ),
        (
            {"key_padding_mask": torch.zeros(S, N)},
            r"key_padding_mask must have shape \(3, 5\), got \(5, 3\)",
        ),
        (
            {"key_padding_mask": torch.zeros(N, S).int()},
            "key_padding_mask must be a boolean tensor .* got torch.int32",
        ),
    ],
)
def test_a_broken_rule_is_named(arguments, message):
    layer = MultiheadAttention(E, H)
    with pytest.raises(fenchel.FenchelError, match=message):
        layer(**{"query": X, "key": KEY, "value": KEY, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embed_dim": 7}, "embed_dim must be divisible by num_heads, .* got 7 and 2"),
        ({"num_heads": 0}, "both must be positive, got 8 and 0"),
        ({"alpha": (1.5, 1.5, 1.5)}, "alpha must have 2 values, one per head, got 3"),
        ({"alpha": "sparse"}, "alpha must be a number, a tensor or \"learned\", got 'sparse'"),
        ({"alpha": -1.0}, "alpha must be above 0"),
        ({"alpha": (1.5, 0.0)}, "alpha must be above 0"),
        ({"alpha_start": 1.0}, 'alpha_start must be strictly between 1 and 2 or "random", got 1.0'),
        (
            {"alpha_start": "uniform"},
            "alpha_start must be strictly between 1 and 2 or .*, got 'uniform'",
        ),
        ({"dropout": 1.5}, r"dropout must be a number in \[0, 1\), got 1.5"),
        ({"dropout": -0.1}, r"dropout must be a number in \[0, 1\), got -0.1"),
        ({"dropout": "0.1"}, r"dropout must be a number in \[0, 1\), got '0.1'"),
    ],
)
def test_a_layer_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(fenchel.FenchelError, match=message):
        MultiheadAttention(**{"embed_dim": E, "num_heads": H, **arguments})
