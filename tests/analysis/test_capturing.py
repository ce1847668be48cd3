"""Attention weights are captured, and the model does not notice."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import fenchel
from fenchel.analysis import capture
from fenchel.errors import FenchelError

PADDING = torch.tensor([[False] * 6, [False] * 4 + [True] * 2, [False] * 3 + [True] * 3])
FUTURE = torch.ones(6, 6, dtype=torch.bool).triu(1)
FLOAT_FUTURE = torch.zeros(6, 6).masked_fill(FUTURE, float("-inf"))


def stack(**options) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)
    return nn.TransformerEncoder(
        layer, 2, enable_nested_tensor=not options.get("norm_first", False)
    )


def layers(dropout: float = 0.0, **options):
    options = {"batch_first": True, "dropout": dropout, **options}
    return {
        "torch": nn.MultiheadAttention(16, 4, **options),
        "softmax": fenchel.nn.MultiheadAttention(16, 4, alpha=1.0, **options),
        "entmax": fenchel.nn.MultiheadAttention(16, 4, alpha="learned", **options),
    }


def states(module: nn.Module) -> list:
    """What must be the same before and after."""
    return [(sorted(each.__dict__), each.training) for each in module.modules()]


@pytest.mark.parametrize("name", layers())
@pytest.mark.parametrize("batch_first", [True, False])
def test_weights_are_those_that_the_layer_returns(name, batch_first):
    layer = layers(batch_first=batch_first)[name].eval()
    x = torch.randn(3, 6, 16) if batch_first else torch.randn(6, 3, 16)
    masks = {"key_padding_mask": PADDING, "attn_mask": FUTURE}
    _, expected = layer(x, x, x, average_attn_weights=False, **masks)
    with capture(layer) as calls:
        output, none = layer(x, x, x, need_weights=False, **masks)
    assert none is None
    assert output.shape == x.shape
    (call,) = calls
    torch.testing.assert_close(call.weights, expected)
    assert call.visible.equal((~FUTURE & ~PADDING[:, None, None]).expand(3, 1, 6, 6))
    assert call.queries.equal(~PADDING)


@pytest.mark.parametrize("name", layers())
def test_one_sequence_without_a_batch(name):
    layer, x = layers()[name].eval(), torch.randn(6, 16)
    with capture(layer) as calls:
        layer(x, x, x, key_padding_mask=PADDING[1], need_weights=False)
    assert calls[0].weights.shape == (1, 4, 6, 6)
    assert calls[0].queries.equal(~PADDING[1:2])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"src_key_padding_mask": PADDING},
        {"mask": FUTURE},
        {"mask": FLOAT_FUTURE, "is_causal": True},
        {"mask": FLOAT_FUTURE, "src_key_padding_mask": PADDING.float() * -1e30},
    ],
    ids=["all", "padding", "causal", "float", "both"],
)
def test_an_encoder_of_torch_gives_the_same_outputs(masks, norm_first, grad, monkeypatch):
    encoder, x = stack(norm_first=norm_first).eval(), torch.randn(3, 6, 16)
    fused = []
    original = torch._transformer_encoder_layer_fwd
    monkeypatch.setattr(
        torch, "_transformer_encoder_layer_fwd", lambda *args: fused.append(1) or original(*args)
    )
    with torch.set_grad_enabled(grad):
        expected, before = encoder(x, **masks), states(encoder)
        count = len(fused)
        with capture(encoder) as calls:
            output = encoder(x, **masks)
    assert states(encoder) == before
    assert output.equal(expected)
    assert len(fused) == 2 * count == (0 if grad else 4)  # the fast path is as fast as before
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with capture(encoder) as slowly:
            encoder(x, **masks)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert [call.name for call in calls] == ["layers.0.self_attn", "layers.1.self_attn"]
    for call, slow in zip(calls, slowly, strict=True):
        assert call.visible.equal(slow.visible)
        assert call.queries.equal(slow.queries)
        valid = slow.queries[:, None, :, None]
        torch.testing.assert_close(call.weights * valid, slow.weights * valid)


@pytest.mark.parametrize("name", layers())
def test_training_is_not_changed(name):
    """Neither the random numbers of dropout nor the gradients; the weights are without dropout."""
    layer, x = layers(dropout=0.5)[name], torch.randn(3, 6, 16)

    def step(watch: bool):
        torch.manual_seed(1)
        layer.zero_grad()
        if watch:
            with capture(layer) as calls:
                output, _ = layer(x, x, x, need_weights=False)
        else:
            calls, output = [], layer(x, x, x, need_weights=False)[0]
        output.square().sum().backward()
        gradients = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
        return output, gradients, torch.rand(()), calls

    plain, watched = step(False), step(True)
    assert plain[0].equal(watched[0])
    assert all(map(torch.equal, plain[1], watched[1]))
    assert plain[2] == watched[2]
    assert watched[3][0].weights.sum(-1).allclose(torch.ones(3, 4, 6))
    assert not watched[3][0].weights.requires_grad
    assert layer.training


def test_kinds_and_layers_of_a_transformer():
    model = nn.Transformer(16, 4, 2, 2, 32, batch_first=True).eval()
    source, target = torch.randn(3, 6, 16), torch.randn(3, 5, 16)
    with capture(model) as calls:
        model(source, target, src_key_padding_mask=PADDING, memory_key_padding_mask=PADDING)
    found = [(call.kind, call.layer, tuple(call.weights.shape[2:])) for call in calls]
    decoder = [("decoder", (5, 5)), ("context", (5, 6))]
    assert found[:2] == [("encoder", 0, (6, 6)), ("encoder", 1, (6, 6))]
    assert found[2:] == [(kind, layer, shape) for layer in (0, 1) for kind, shape in decoder]
    assert calls[3].visible[:, 0, 0].equal(~PADDING)


def test_the_queries_of_context_attention_are_those_of_the_self_attention_before():
    model = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True).eval()
    with capture(model) as calls:
        model(torch.randn(3, 6, 16), torch.randn(3, 4, 16), tgt_key_padding_mask=PADDING)
    assert [call.kind for call in calls] == ["self", "context"]
    assert calls[1].queries.equal(~PADDING)


def test_a_layer_whose_name_says_nothing_is_judged_by_its_inputs():
    layer, x = layers()["torch"], torch.randn(3, 6, 16)
    with capture(nn.ModuleDict({"attn": layer})) as calls:
        layer(x, x.clone(), x)
        layer(x, x + 1, x)
        layer(x, x[:, :4], x[:, :4])
    assert [call.kind for call in calls] == ["self", "context", "context"]


def test_masks_per_head_and_keys_that_the_layer_adds():
    layer = nn.MultiheadAttention(16, 4, add_bias_kv=True, add_zero_attn=True, batch_first=True)
    x, mask = torch.randn(3, 6, 16), torch.rand(12, 6, 6) < 0.3
    with capture(layer) as calls:
        layer(x, x, x, attn_mask=mask)
    assert calls[0].weights.shape == (3, 4, 6, 8)
    assert calls[0].visible[..., :6].equal(~mask.view(3, 4, 6, 6))
    assert calls[0].visible[..., 6:].all()
    assert ((calls[0].weights != 0) <= calls[0].visible).all()


def test_alpha_comes_with_the_weights():
    alphas = {name: capture_once(layer).alpha for name, layer in layers().items()}
    assert alphas["torch"] is None
    assert alphas["softmax"] == 1.0
    assert alphas["entmax"].tolist() == [1.5] * 4
    assert not alphas["entmax"].requires_grad


def capture_once(layer: nn.Module):
    x = torch.randn(3, 6, 16)
    with capture(layer) as calls:
        layer(x, x, x)
    return calls[0]


def test_a_module_that_is_called_several_times():
    layer, x = layers()["entmax"], torch.randn(3, 6, 16)
    with capture(layer) as calls:
        for length in (6, 5, 4):
            layer(x[:, :length], x[:, :length], x[:, :length])
    assert [call.weights.shape[2] for call in calls] == [6, 5, 4]
    assert {call.name for call in calls} == {"MultiheadAttention"}


def test_weights_are_passed_on_instead_of_kept():
    layer, x, received = layers()["torch"], torch.randn(3, 6, 16), []
    with capture(layer, received.append) as calls:
        layer(x, x, x)
    assert calls == []
    assert len(received) == 1


def test_everything_is_restored_after_an_exception():
    model, before = stack(), None
    model.layers[0].self_attn.forward = own = model.layers[0].self_attn.forward
    before = states(model)

    def stop(attention):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), capture(model, stop):
        model(torch.randn(3, 6, 16))
    assert states(model) == before
    assert model.layers[0].self_attn.forward is own
    with pytest.raises(AssertionError, match="embedding dimension"), capture(model):
        model(torch.randn(3, 6, 15))
    assert states(model) == before


def test_captures_may_be_nested():
    layer, x = layers()["entmax"], torch.randn(3, 6, 16)
    with capture(layer) as outer:
        with capture(layer) as inner:
            layer(x, x, x)
        layer(x, x, x)
    assert (len(outer), len(inner)) == (2, 1)


def test_a_model_without_attention_is_an_error():
    with (
        pytest.raises(FenchelError, match=r"must have attention .* got Linear"),
        capture(nn.Linear(1, 1)),
    ):
        pass
    with (
        pytest.raises(FenchelError, match=r"model must be a torch.nn.Module, got dict"),
        capture({}),
    ):  # type: ignore[arg-type]
        pass


def test_autocast_gives_the_same_outputs():
    layer, x = layers()["entmax"].eval(), torch.randn(3, 6, 16)
    with torch.autocast("cpu", torch.bfloat16):
        expected, _ = layer(x, x, x, need_weights=False)
        with capture(layer) as calls:
            output, _ = layer(x, x, x, need_weights=False)
    assert output.equal(expected)
    assert calls[0].weights.dtype == torch.bfloat16


def test_a_compiled_model_runs_without_its_compiled_code():
    model = nn.ModuleDict({"attn": layers()["entmax"]})
    model.forward = lambda x: model["attn"](x, x, x, need_weights=False)[0]
    compiled, x = torch.compile(model, backend=_no_backend), torch.randn(3, 6, 16)
    with capture(compiled) as calls:
        compiled(x)
    assert [call.name for call in calls] == ["attn"]


def _no_backend(graph, inputs):
    raise AssertionError("compiled")
