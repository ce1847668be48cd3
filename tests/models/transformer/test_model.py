"""The Transformer gives the same results in training, search and analysis."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

from fenchel import FenchelError, entmax
from fenchel.data.vocabulary import BOS, EOS, PAD
from fenchel.models import Transformer, TransformerConfig, next_token
from fenchel.models.means import read_means, stack_means
from fenchel.nn import MultiheadAttention
from fenchel.tasks.sequences.encoded import Batch
from tests.models.batches import SOURCE, TARGET, random_batch
from tests.models.transformer.small import ATTENTIONS, SIZES, small_transformer


def loss_of(model: Transformer, batch: Batch) -> torch.Tensor:
    return model.loss(batch, describe=False)["loss"].total


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_changes_nothing(norm: str):
    model, batch = small_transformer(norm=norm, output_alpha=1.5).eval(), random_batch()
    together = stack_means(model.loss(batch))
    alone = torch.zeros_like(together)
    for row in range(5):
        source = int(batch.source_lengths[row])
        target = int((batch.target[row] != PAD).sum())
        one = Batch(
            batch.source[row : row + 1, :source],
            batch.source_lengths[row : row + 1],
            batch.target[row : row + 1, :target],
            batch.index[row : row + 1],
        )
        alone += stack_means(model.loss(one))
    torch.testing.assert_close(together, alone)


def test_a_source_of_padding_only_is_finite():
    model, batch = small_transformer(), random_batch()
    batch.source[2] = PAD
    for model in (small_transformer(), small_transformer(attention_map="softmax")):
        loss_of(model, batch).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("attention", ATTENTIONS, ids=str)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_parameter_has_a_gradient(attention: dict[str, Any], norm: str):
    model = small_transformer(norm=norm, dropout=0.1, **attention)
    loss_of(model, random_batch()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name


def test_the_gradient_is_that_of_the_loss():
    model, batch = small_transformer(spread=1.0, label_smoothing=0.1), random_batch()
    layer = model.decoder.layers[1]
    chosen = (layer.multihead_attn.exponent.logit, layer.self_attn.in_proj_weight)

    def loss(*_: torch.Tensor) -> torch.Tensor:
        return loss_of(model, batch)

    assert torch.autograd.gradcheck(loss, chosen, fast_mode=True)


def test_labels_are_smoothed_in_training_only():
    batch = random_batch()
    losses = {}
    for smoothing in (0.0, 0.2):
        model = small_transformer(label_smoothing=smoothing)
        losses[smoothing] = [loss_of(model.train(train), batch) for train in (True, False)]
    assert losses[0.0][0] == losses[0.0][1] == losses[0.2][1] != losses[0.2][0]
    scores, _ = small_transformer()(batch.source, batch.source_lengths, batch.target)
    expected = torch.nn.functional.cross_entropy(
        scores.flatten(0, 1), batch.target.flatten(), ignore_index=PAD, reduction="sum"
    )
    torch.testing.assert_close(losses[0.0][0], expected)


def test_a_large_vocabulary_has_the_same_loss(monkeypatch: pytest.MonkeyPatch):
    model, batch, results = small_transformer(label_smoothing=0.1).train(), random_batch(), []
    for limit in (1, 10_000):
        monkeypatch.setattr(next_token, "LARGE_VOCABULARY", limit)
        model.zero_grad()
        means = model.loss(batch)
        means["loss"].total.backward()
        results.append([stack_means(means), *(p.grad for p in model.parameters())])
    for chunked, plain in zip(*results, strict=True):
        torch.testing.assert_close(chunked, plain)


def test_a_loss_without_description_is_the_same_loss():
    model, batch = small_transformer().eval(), random_batch()
    described, bare = model.loss(batch), model.loss(batch, describe=False)
    assert list(bare) == ["loss"]
    torch.testing.assert_close(stack_means(bare)[0], stack_means(described)[0])
    assert bare["loss"].count == (batch.target != PAD).sum()
    for name in ("accuracy", "exact", "output_support", "attention_support"):
        assert not described[name].total.requires_grad


def test_attend_agrees_with_the_supports_of_the_loss():
    model, batch = small_transformer(output_alpha=1.5).eval(), random_batch()
    seen = model.attend(batch.source, batch.source_lengths, batch.target)
    found = model.loss(batch)
    means = read_means(list(found), stack_means(found))
    assert seen.heads is not None
    torch.testing.assert_close(seen.attention, seen.heads.mean(1))
    expected = (seen.heads > 0).sum(-1).double().mean(1)[seen.valid].mean()
    assert means["attention_support"] == pytest.approx(expected.item())
    assert means["attention_support"] < (seen.attention > 0).sum(-1)[seen.valid].double().mean()
    torch.testing.assert_close(seen.attention_support[seen.valid].double().mean(), expected)
    assert means["output_support"] == seen.output_support[seen.valid].double().mean()
    assert 1 <= means["output_support"] < TARGET


def test_a_hook_sees_the_weights_of_every_head():
    """What the analysis relies on: attention is called as a module, with the arguments of PyTorch's."""
    model, batch, shapes = small_transformer().eval(), random_batch(), {}

    def ask(module: Any, args: Any, options: dict[str, Any]) -> Any:
        return args, {**options, "need_weights": True, "average_attn_weights": False}

    def look(name: str) -> Any:
        return lambda module, args, result: shapes.update({name: tuple(result[1].shape)})

    for name, module in model.named_modules():
        if isinstance(module, MultiheadAttention):
            module.register_forward_pre_hook(ask, with_kwargs=True)
            module.register_forward_hook(look(name))
    expected = loss_of(copy.deepcopy(model), batch)
    torch.testing.assert_close(loss_of(model, batch), expected)
    assert shapes == {
        f"{part}.layers.{layer}.{name}": (5, 2, queries, keys)
        for layer in range(2)
        for part, name, queries, keys in [
            ("encoder", "self_attn", 7, 7),
            ("decoder", "self_attn", 6, 6),
            ("decoder", "multihead_attn", 6, 7),
        ]
    }


def test_alphas_are_those_of_every_head():
    model = small_transformer(heads=4, alpha_start=1.3)
    expected = {f"{kind}.{layer}" for kind in ("encoder", "context", "decoder") for layer in (0, 1)}
    assert set(model.alphas()) == expected
    for alpha in model.alphas().values():
        assert alpha.dtype == torch.float32
        assert not alpha.requires_grad
        torch.testing.assert_close(alpha, torch.full((4,), 1.3))
    assert small_transformer(attention_alpha=1.5).alphas() == {}
    mixed = small_transformer(attention_map="softmax", decoder_alpha="learned")
    assert list(mixed.alphas()) == ["decoder.0", "decoder.1"]
    tied = small_transformer(heads=4, tie_alpha=True).alphas()
    assert all(alpha.shape == (4,) and len(alpha.unique()) == 1 for alpha in tied.values())


def test_models_of_one_seed_start_alike_whatever_their_attention():
    models = [small_transformer(**attention) for attention in ATTENTIONS[:4]]
    for name, parameter in models[0].named_parameters():
        for other in models[1:]:
            assert torch.equal(other.get_parameter(name), parameter), name
    again = small_transformer()
    assert torch.equal(again.alphas()["context.1"], small_transformer().alphas()["context.1"])
    every = torch.cat(list(again.alphas().values()))
    assert len(every.unique()) == len(every)
    torch.manual_seed(2)
    other = Transformer(again.config)
    assert not torch.equal(other.alphas()["context.1"], again.alphas()["context.1"])
    assert not torch.equal(other.output.weight, again.output.weight)


@pytest.mark.parametrize(
    ("shared", "matrices"), [("none", 3), ("target", 2), ("joint", 1)], ids=str
)
def test_shared_embeddings_are_one_parameter(shared: str, matrices: int):
    model = small_transformer(share_embeddings=shared, source_size=TARGET)
    batch = random_batch()
    batch = batch._replace(source=batch.source.clamp(max=TARGET - 1))
    weights = [
        model.output.weight,
        model.target_embedding.tokens.weight,
        model.source_embedding.tokens.weight,
    ]
    assert len({id(weight) for weight in weights}) == matrices
    loss_of(model, batch).backward()
    assert all(weight.grad is not None for weight in weights)


def test_a_bfloat16_model_keeps_its_alpha():
    model = small_transformer().float()
    with torch.no_grad():
        logit = model.encoder.layers[0].self_attn.exponent.logit
        logit.copy_(torch.tensor([0.01, -6.0]))
    before = model.alphas()
    model.bfloat16()
    assert model.output.weight.dtype == torch.bfloat16
    for name, alpha in model.alphas().items():
        assert torch.equal(alpha, before[name])
    assert model.alphas()["encoder.0"].tolist() == pytest.approx([1.5025, 1.002472], abs=1e-6)
    model.loss(random_batch())["loss"].total.backward()
    gradient = model.encoder.layers[0].self_attn.exponent.logit.grad
    assert gradient is not None
    assert gradient.dtype == torch.float32


@pytest.mark.parametrize("attention", ATTENTIONS[:3], ids=str)
def test_half_precision_comes_close(attention: dict[str, Any]):
    model, batch = small_transformer(**attention).float().eval(), random_batch()
    exact = model.loss(batch)["loss"].total
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model.loss(batch)["loss"].total
    assert rounded.dtype == torch.float32
    assert rounded.item() == pytest.approx(exact.item(), rel=0.03)
    rounded.backward()
    half = model.bfloat16().loss(batch)["loss"].total
    assert half.item() == pytest.approx(exact.item(), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("attention", [ATTENTIONS[0], ATTENTIONS[2]], ids=str)
def test_the_loss_compiles_whole(attention: dict[str, Any]):
    model, batch = small_transformer(**attention, layers=1), random_batch()
    expected = torch.autograd.grad(loss_of(model, batch), tuple(model.parameters()))

    def compiled_loss(source: torch.Tensor, lengths: torch.Tensor, target: torch.Tensor):
        return loss_of(model, Batch(source, lengths, target, batch.index))

    compiled = torch.compile(compiled_loss, fullgraph=True, backend="aot_eager")
    loss = compiled(batch.source, batch.source_lengths, batch.target)
    for ours, theirs in zip(
        torch.autograd.grad(loss, tuple(model.parameters())), expected, strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_copies_and_checkpoints_are_equal():
    model, batch = small_transformer(share_embeddings="target").eval(), random_batch()
    fresh = small_transformer(spread=1.0).eval()
    fresh.load_state_dict(model.state_dict())
    for other in (fresh, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.output.weight is other.target_embedding.tokens.weight
        torch.testing.assert_close(loss_of(other, batch), loss_of(model, batch), rtol=0, atol=0)
    assert not any("positions" in name for name in model.state_dict())


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"heads": 3}, "hidden_size must be divisible by heads, got 8 and 3 heads"),
        ({"hidden_size": 7, "heads": 7}, "hidden_size must be even, got 7"),
        ({"layers": 0}, "layers must be a whole number of at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"label_smoothing": -0.1}, "label_smoothing must be at least 0 and finite, got -0.1"),
        ({"attention_map": "sparsemax"}, "attention_map must be one of softmax, entmax, got"),
        ({"attention_alpha": "learnt"}, 'must be a positive number or "learned", got .learnt'),
        ({"attention_alpha": 0.0}, "attention_alpha must be above 0 and finite, got 0.0"),
        ({"context_alpha": -1.0}, "context_alpha must be above 0 and finite, got -1.0"),
        ({"alpha_start": 2.0}, 'alpha_start must be strictly between 1 and 2 or "random", got 2.0'),
        (
            {"alpha_start": "normal"},
            "alpha_start must be strictly between 1 and 2 or .random., got .normal",
        ),
        ({"alpha_start": float("nan")}, "alpha_start must be strictly between 1 and 2"),
        ({"norm": "none"}, "norm must be one of pre, post, got 'none'"),
        ({"share_embeddings": "all"}, "share_embeddings must be one of none, target, joint"),
        (
            {"share_embeddings": "joint"},
            "requires equal source_size and target_size, got 20 and 15",
        ),
        ({"output_alpha": 0.0}, "output_alpha must be above 0"),
        ({"max_positions": 0}, "max_positions must be a whole number of at least 1"),
    ],
)
def test_wrong_configurations_are_refused(choices: dict[str, Any], message: str):
    sizes = {"source_size": SOURCE, "target_size": TARGET, **SIZES}
    with pytest.raises(FenchelError, match=message):
        TransformerConfig(**{**sizes, **choices})


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_sequence_longer_than_the_positions_is_refused(side: str):
    batch = random_batch(source=7 if side == "target" else 31, target=31 if side == "target" else 6)
    message = "a sequence must not be longer than max_positions = 30, got 31 tokens"
    with pytest.raises(FenchelError, match=message):
        small_transformer().loss(batch)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (torch.ones(2, 3), torch.ones(2, 4).long(), "source must be integers"),
        (torch.ones(2, 0).long(), torch.ones(2, 4).long(), "not empty"),
        (torch.ones(2, 3).long(), torch.ones(2, 4), "target must be integers"),
        (torch.ones(2, 3).long(), torch.ones(3, 4).long(), "target must have 2 rows"),
    ],
)
def test_wrong_batches_are_refused(source: torch.Tensor, target: torch.Tensor, message: str):
    with pytest.raises(FenchelError, match=message):
        small_transformer()(source, torch.tensor([3, 3]), target)


def test_exact_sequences_are_those_that_greedy_search_finds():
    model, batch = small_transformer().eval(), random_batch(size=12)
    stepper = model.stepper(batch.source, batch.source_lengths)
    state, tokens, found = stepper.start(1), torch.full((12, 1), BOS), []
    for _ in range(6):
        probabilities, state = stepper(tokens, state)
        tokens = probabilities.argmax(-1)
        found.append(tokens)
    greedy = torch.cat(found, 1)
    exact = model.loss(batch._replace(target=greedy))["exact"]
    assert (exact.total.item(), exact.count.item()) == (12, 12)
    greedy[::2, 2] = torch.where(greedy[::2, 2] == 4, 5, 4)
    assert model.loss(batch._replace(target=greedy))["exact"].total.item() == 6


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_probabilities_are_entmax_of_the_scores(alpha: float):
    model, batch = small_transformer(output_alpha=alpha).eval(), random_batch()
    scores, weights = model(batch.source, batch.source_lengths, batch.target)
    seen = model.attend(batch.source, batch.source_lengths, batch.target)
    torch.testing.assert_close(seen.probabilities, entmax(scores, alpha))
    torch.testing.assert_close(seen.attention, weights)
    assert ((weights > 0) & (batch.source == PAD)[:, None]).sum() == 0
    assert (batch.target == EOS).sum() == seen.valid.shape[0]
