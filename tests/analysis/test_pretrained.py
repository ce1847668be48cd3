"""Models of transformers, made from configurations without any weights from the network."""

from __future__ import annotations

import pytest
import torch

from fenchel.analysis import capture, heads
from fenchel.errors import FenchelError

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

IDS = torch.arange(21).view(3, 7) % 17 + 5
MASK = torch.tensor([[1] * 7, [1] * 5 + [0] * 2, [1] * 3 + [0] * 4])
SIZES = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 32}
SIZES |= {"num_attention_heads": 4}
T5 = {"vocab_size": 40, "d_model": 16, "d_kv": 4, "num_layers": 2, "num_heads": 4, "d_ff": 32}
MARIAN = {"vocab_size": 40, "d_model": 16, "pad_token_id": 0, "decoder_start_token_id": 0}
MARIAN |= {f"{side}_{name}": size for side in ("encoder", "decoder")
           for name, size in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 32))}  # fmt: skip
GPT2 = {"vocab_size": 40, "n_embd": 16, "n_layer": 2, "n_head": 4}
TARGET = {"decoder_input_ids": IDS[:, :5]}
MODELS = {
    "bert": ("Bert", SIZES, MASK, {}),
    "llama": ("Llama", SIZES | {"num_key_value_heads": 2}, MASK.flip(1), {}),
    "gpt2": ("GPT2", GPT2 | {"bos_token_id": 1, "eos_token_id": 2}, MASK, {}),
    "t5": ("T5", T5, MASK, TARGET),
    "marian": ("Marian", MARIAN, MASK, TARGET),
}
SELF = [("self", 0), ("self", 1)]
ENCODER = [("encoder", 0), ("encoder", 1)]
DECODER = [("decoder", 0), ("context", 0), ("decoder", 1), ("context", 1)]
KINDS = {"bert": ENCODER, "llama": SELF, "gpt2": SELF}
KINDS |= dict.fromkeys(("t5", "marian"), ENCODER + DECODER)


def build(name: str, implementation: str = "sdpa"):
    kind, sizes, mask, more = MODELS[name]
    config = getattr(transformers, f"{kind}Config")(**sizes)
    model = getattr(transformers, f"{kind}Model")(config).eval()
    model.set_attn_implementation(implementation)
    return model, {"input_ids": IDS, "attention_mask": mask, **more}


def returned(model, inputs) -> dict[str, list[torch.Tensor]]:
    """The weights that the model returns itself, by kind."""
    model.set_attn_implementation("eager")
    output = model(**inputs, output_attentions=True)
    names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions"}
    names |= {"context": "cross_attentions"}
    if "decoder_input_ids" not in inputs:
        names = {"encoder": "attentions", "self": "attentions"}
    return {kind: list(output[name]) for kind, name in names.items() if name in output}


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", MODELS)
def test_weights_are_those_that_the_model_returns(name, implementation):
    model, inputs = build(name, implementation)
    expected = model(**inputs)[0]
    with capture(model) as calls:
        output = model(**inputs)[0]
    assert output.equal(expected)
    assert model.config._attn_implementation == implementation
    assert [(call.kind, call.layer) for call in calls] == KINDS[name]
    theirs = returned(model, inputs)
    for call in calls:
        valid = call.queries[:, None, :, None]
        weights = theirs[call.kind][call.layer]
        torch.testing.assert_close(call.weights * valid, weights * valid, atol=1e-6, rtol=0)
        assert (call.weights * valid * ~call.visible == 0).all()


@pytest.mark.parametrize("name", MODELS)
def test_padding_is_found(name):
    model, inputs = build(name)
    with capture(model) as calls:
        model(**inputs)
    mask = inputs["attention_mask"].bool()
    for call in calls:
        if call.kind in ("encoder", "self"):
            assert call.queries.equal(mask)
        if call.kind == "context":
            assert call.visible.any(2).any(1).equal(mask)
        if call.kind in ("encoder", "context"):
            assert call.visible[:, 0, 0].equal(mask)
        else:
            assert not call.visible.triu(1).any()


def test_a_cache_of_keys():
    model, _ = build("llama")
    inputs = {"input_ids": IDS[:1]}
    with capture(model) as whole:
        model(**inputs)
    with capture(model) as calls:
        cache = model(IDS[:1, :4], use_cache=True).past_key_values
        for place in (4, 5, 6):
            cache = model(IDS[:1, place : place + 1], past_key_values=cache).past_key_values
    assert [call.start for call in calls] == [0, 0, 4, 4, 5, 5, 6, 6]
    for layer in (0, 1):
        rows = [call.weights[0, :, -1] for call in calls if call.layer == layer]
        for row, place in zip(rows, (3, 4, 5, 6), strict=True):
            torch.testing.assert_close(row, whole[layer].weights[0, :, place, : place + 1])


def test_an_implementation_of_ones_own_is_left_in_place():
    """Exact zeros of another map are seen; one that returns no weights is an error."""
    import fenchel

    def entmax(module, query, key, value, attention_mask, scaling=None, **kwargs):
        scores = query @ key.mT * scaling
        scores = scores if attention_mask is None else scores + attention_mask
        weights = fenchel.entmax(4000 * scores, 1.5)
        output = (weights @ value).transpose(1, 2).contiguous()
        return output, None if hidden else weights

    hidden = False
    interface = transformers.AttentionInterface()
    interface.register("own", entmax)
    try:
        transformers.AttentionMaskInterface().register("own", transformers.masking_utils.eager_mask)
        model, inputs = build("bert", "own")
        with capture(model) as calls:
            model(**inputs)
        valid = MASK[:, None, :, None] * MASK[:, None, None]
        assert ((calls[0].weights == 0) * valid).any()
        hidden = True
        with pytest.raises(FenchelError, match="must return weights"), capture(model):
            model(**inputs)
    finally:
        type(interface)._global_mapping.pop("own")
        transformers.AttentionMaskInterface._global_mapping.pop("own", None)


def test_flash_attention_is_replaced_by_eager_attention_and_restored(monkeypatch):
    model, inputs = build("bert", "eager")
    expected = model(**inputs)[0]
    model.config._attn_implementation_internal = "flash_attention_2"
    with capture(model) as calls:
        assert model.config._attn_implementation == "eager"
        assert model(**inputs)[0].equal(expected)
    assert len(calls) == 2
    assert model.config._attn_implementation == "flash_attention_2"


def test_a_model_that_does_not_say_where_its_attention_is():
    config = transformers.MPNetConfig(**SIZES)
    with (
        pytest.raises(FenchelError, match="got MPNetModel"),
        capture(transformers.MPNetModel(config)),
    ):
        pass


def test_a_batch_of_a_tokenizer_brings_its_tokens():
    library = pytest.importorskip("tokenizers")
    texts = ["what is a low lowest ?", "the lowest", "what now"]
    tokenizer = library.Tokenizer(library.models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = library.pre_tokenizers.Whitespace()
    trainer = library.trainers.BpeTrainer(
        vocab_size=30, special_tokens=["<pad>", "<unk>"], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    batch = fast(texts, return_tensors="pt", padding=True)
    model, _ = build("llama")
    table = heads(model, [batch], examples=3)
    assert table.sentences == 3
    tokens = [fast.tokenize(text) for text in texts]
    assert [list(sentence.source) for sentence in table.examples] == tokens
    assert len(table.examples[1].rows("self", 0, 0)) == len(tokens[1])
    record = table.records()[0]
    assert 0 <= record["subword_merging"] <= 1
    assert record["interrogation"] is None  # a causal model does not see the question mark to come
