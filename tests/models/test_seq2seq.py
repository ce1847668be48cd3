"""The sequence-to-sequence model gives the same results in training, search and analysis."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from fenchel import FenchelError, entmax
from fenchel.data.vocabulary import BOS, EOS, PAD
from fenchel.models import Seq2Seq, Seq2SeqConfig, next_token
from fenchel.models.means import read_means, stack_means
from fenchel.models.seq2seq.config import ATTENTIONS, MAPS
from fenchel.models.seq2seq.continuous import Continuous
from fenchel.tasks.sequences.encoded import Batch
from tests.models.batches import SOURCE, TARGET, random_batch, small_model


def _alpha(name: str) -> float:
    return 2.0 if name == "combined" else 1.5


@pytest.mark.parametrize("feeding", [True, False])
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", MAPS)
def test_a_stepper_gives_what_teacher_forcing_gives(name: str, attention: str, feeding: bool):
    model = small_model(
        attention=attention,
        attention_map=name,
        attention_alpha=_alpha(name),
        input_feeding=feeding,
    )
    batch = random_batch()
    scores, weights = model(batch.source, batch.source_lengths, batch.target)
    stepper = model.stepper(batch.source, batch.source_lengths)
    state, tokens = stepper.start(2), torch.full((5, 2), BOS)
    for step in range(batch.target.shape[1]):
        probabilities, state = stepper(tokens, state)
        tokens = batch.target[:, step : step + 1].expand(-1, 2)
        expected = entmax(scores[:, step], 1.5)
        torch.testing.assert_close(probabilities, expected.unsqueeze(1).expand(-1, 2, -1))
        torch.testing.assert_close(stepper.attention[:, 1], weights[:, step])
    assert (weights.sum(-1) - 1).abs().max() < 1e-9
    assert (weights * (batch.source == PAD).unsqueeze(1)).abs().max() == 0


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_bias_of_the_attention_is_added_inside_tanh(attention: str):
    model = small_model(attention=attention, attention_bias=True)
    bias = model.decoder.attention.of_context.bias
    states, mask = torch.randn(2, 4, 8).double(), torch.ones(2, 4, dtype=torch.bool)
    query = torch.randn(2, 3, 8).double()
    attend = model.decoder.attention
    with torch.no_grad():
        shown, weights = attend(query, attend.remember(states, mask))
        context = weights @ states
        expected = context @ attend.of_context.weight.T + attend.of_query(query) + bias
    torch.testing.assert_close(shown, expected.tanh())
    loss = model.loss(random_batch())["loss"].total
    assert torch.autograd.grad(loss, bias)[0].abs().max() > 0


OWN = [("entmax", alpha) for alpha in (1.0, 1.3, 1.5, 2.0)]


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("attention", ["dot", "general"])
@pytest.mark.parametrize(("name", "alpha"), [*OWN, ("combined", 1.0), ("combined", 2.0)])
def test_the_steps_own_derivative_is_that_of_autograd(
    name: str, alpha: float, attention: str, layers: int, monkeypatch: pytest.MonkeyPatch
):
    choices = {"attention_map": name, "attention_alpha": alpha}
    model = small_model(attention=attention, layers=layers, **choices)
    batch, results = random_batch(), []
    for own in (True, False):
        if not own:
            monkeypatch.setattr(model.decoder, "_has_own_derivative", lambda memory: False)
            monkeypatch.setattr(Continuous, "has_closed_form", lambda self, device: False)
        model.zero_grad()
        outputs = model(batch.source, batch.source_lengths, batch.target)
        draw = torch.Generator().manual_seed(2)
        pull = [torch.randn(o.shape, generator=draw, dtype=o.dtype) for o in outputs]
        torch.autograd.backward(outputs, pull)
        results.append([*outputs, *(p.grad for p in model.parameters())])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=1e-9)


def test_the_derivative_is_right_with_dropout():
    model, batch = small_model(dropout=0.3), random_batch()
    decoder = model.decoder
    chosen = (decoder.lstm.weight_ih_l1, decoder.attention.of_query.weight, decoder.lstm.bias_hh_l1)

    def loss(*_: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return model.loss(batch)["loss"].total

    assert torch.autograd.gradcheck(loss, chosen, fast_mode=True)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-5)], ids=str
)
@pytest.mark.parametrize("layers", [1, 2])
def test_the_encoder_is_a_packed_bidirectional_lstm(
    layers: int, dtype: torch.dtype, tolerance: float
):
    model, batch = small_model(layers=layers).to(dtype), random_batch()
    encoder, results = model.encoder, []
    for packed in (False, True):
        model.zero_grad()
        if packed:
            lengths = batch.source_lengths
            inputs = pack_padded_sequence(
                encoder.embedding(batch.source), lengths, batch_first=True, enforce_sorted=False
            )
            outputs, ends = encoder.lstm(inputs)
            states, _ = pad_packed_sequence(outputs, batch_first=True)
            hidden, cell = (
                end.view(layers, 2, 5, 4).transpose(1, 2).reshape(layers, 5, 8) for end in ends
            )
        else:
            states, _, hidden, cell = encoder(batch.source)
        draw = torch.Generator().manual_seed(2)
        parts = (states, hidden, cell)
        pull = [torch.randn(part.shape, generator=draw, dtype=part.dtype) for part in parts]
        torch.autograd.backward(parts, pull)
        results.append([*parts, *(p.grad.clone() for p in encoder.parameters())])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=100 * tolerance)


def test_a_source_of_padding_only_has_zero_states():
    model, batch = small_model(), random_batch()
    batch.source[2] = PAD
    states, mask, hidden, cell = model.encoder(batch.source)
    assert not mask[2].any()
    for part in (states[2], hidden[:, 2], cell[:, 2]):
        assert part.abs().max() == 0
    loss = model.loss(batch)["loss"].total
    loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("feeding", [True, False])
def test_padding_changes_nothing(feeding: bool):
    model, batch = small_model(input_feeding=feeding).eval(), random_batch()
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


def test_exact_sequences_are_those_that_greedy_search_finds():
    model, batch = small_model().eval(), random_batch(size=12)
    stepper = model.stepper(batch.source, batch.source_lengths)
    state, tokens, found = stepper.start(1), torch.full((12, 1), BOS), []
    for _ in range(6):
        probabilities, state = stepper(tokens, state)
        tokens = probabilities.argmax(-1)
        found.append(tokens)
    greedy = torch.cat(found, 1)
    greedy[:, -1] = EOS  # what is right depends on the last symbol as well
    target = greedy.clone()
    target[::2, 2] = torch.where(greedy[::2, 2] == 4, 5, 4)
    exact = model.loss(batch._replace(target=target))["exact"]
    right = (tokens[1::2, 0] == EOS).sum().item()
    assert (exact.total.item(), exact.count.item()) == (right, 12)
    exact = model.loss(batch._replace(target=torch.cat(found, 1)))["exact"]
    assert (exact.total.item(), exact.count.item()) == (12, 12)


def test_a_large_vocabulary_has_the_same_loss(monkeypatch: pytest.MonkeyPatch):
    model, batch, results = small_model().train(), random_batch(), []
    for limit in (1, 10_000):
        monkeypatch.setattr(next_token, "LARGE_VOCABULARY", limit)
        model.zero_grad()
        means = model.loss(batch)
        means["loss"].total.backward()
        results.append([stack_means(means), *(p.grad for p in model.parameters())])
    for chunked, plain in zip(*results, strict=True):
        torch.testing.assert_close(chunked, plain)


def test_a_learned_alpha_starts_at_its_default_and_learns():
    torch.manual_seed(0)
    model = Seq2Seq(Seq2SeqConfig(SOURCE, TARGET, 6, 8, attention_alpha="learned"))
    alpha = model.decoder.attention.map.alpha
    assert alpha.item() == 1.5
    model.loss(random_batch())["loss"].total.backward()
    assert model.decoder.attention.map.exponent.logit.grad.abs() > 0


def test_a_loss_without_description_is_the_same_loss():
    model, batch = small_model().eval(), random_batch()
    described, bare = model.loss(batch), model.loss(batch, describe=False)
    assert list(bare) == ["loss"]
    torch.testing.assert_close(stack_means(bare)[0], stack_means(described)[0], rtol=0, atol=0)
    assert bare["loss"].count == (batch.target != PAD).sum()
    for name in ("accuracy", "exact", "output_support", "attention_support"):
        assert not described[name].total.requires_grad


def test_shared_embeddings_are_one_parameter():
    model = small_model(share_embeddings=True, embedding_size=8)
    assert model.decoder.embedding.weight is model.output.weight
    assert len(list(model.parameters())) == len(list(small_model().parameters())) - 1


def test_a_selected_stepper_continues_with_its_sentences():
    model, batch = small_model(), random_batch()
    stepper, rows = model.stepper(batch.source, batch.source_lengths), torch.tensor([3, 1])
    probabilities, _ = stepper(torch.full((5, 1), BOS), stepper.start(1))
    chosen = stepper.select(rows)
    assert chosen.batch_size == 2
    torch.testing.assert_close(
        chosen(torch.full((2, 1), BOS), chosen.start(1))[0], probabilities[rows]
    )


def test_attend_agrees_with_the_supports_of_the_loss():
    model, batch = small_model().eval(), random_batch()
    seen = model.attend(batch.source, batch.source_lengths, batch.target)
    found = model.loss(batch)
    means = read_means(list(found), stack_means(found))
    valid = seen.valid
    assert means["attention_support"] == seen.attention_support[valid].double().mean()
    assert means["output_support"] == seen.output_support[valid].double().mean()
    assert 1 <= means["output_support"] < TARGET


@pytest.mark.parametrize("feeding", [True, False])
def test_half_precision_comes_close(feeding: bool):
    model, batch = small_model(spread=2.0, input_feeding=feeding).float().eval(), random_batch()
    exact = model.loss(batch)["loss"].total
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model.loss(batch)["loss"].total
    assert rounded.dtype == torch.float32
    assert rounded.item() == pytest.approx(exact.item(), rel=0.02)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"hidden_size": 7}, "hidden_size must be even, got 7"),
        ({"layers": 0}, "layers must be a whole number of at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"attention": "bilinear"}, "attention must be .*general"),
        ({"attention_map": "hardmax"}, "attention_map must be .*fusedmax"),
        ({"attention_alpha": "learnt"}, 'positive number or "learned", got .learnt'),
        (
            {"attention_alpha": "learned", "attention_map": "combined"},
            "attention_alpha must be a positive number, got",
        ),
        (
            {"attention_map": "combined", "attention_bases": 31},
            "attention_bases must be a multiple of 3",
        ),
        (
            {"attention_map": "combined", "attention_alpha": 2.5},
            "attention_alpha must be from 1 to 2",
        ),
        (
            {"attention_map": "combined", "continuous_alpha": 0.5},
            "continuous_alpha must be from 1 to 2",
        ),
        ({"output_alpha": 0.0}, "output_alpha"),
        ({"output_alpha": float("nan")}, "output_alpha must be above 0"),
        ({"attention_alpha": float("nan")}, "attention_alpha must be a positive number"),
        ({"attention_map": "fusedmax", "attention_strength": -0.1}, "attention_strength must be"),
        ({"attention_map": "pnormmax", "attention_strength": 1.0}, "attention_strength must be"),
        (
            {"share_embeddings": True, "embedding_size": 6},
            "share_embeddings requires equal embedding_size",
        ),
    ],
)
def test_wrong_configurations_are_refused(choices: dict, message: str):
    with pytest.raises(FenchelError, match=message):
        Seq2SeqConfig(SOURCE, TARGET, **choices)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            torch.ones(2, 3),
            torch.ones(2, 4, dtype=torch.int64),
            r"source must be integers of shape \(B, length\), not empty, got torch.float32",
        ),
        (
            torch.ones(3, dtype=torch.int64),
            torch.ones(2, 4, dtype=torch.int64),
            r"source must be .*, got torch.int64 of shape \(3,\)",
        ),
        (torch.ones(2, 0, dtype=torch.int64), torch.ones(2, 4, dtype=torch.int64), "not empty"),
        (
            torch.ones(2, 3, dtype=torch.int64),
            torch.ones(3, 4, dtype=torch.int64),
            "target must have 2 rows, one per source, got 3 rows",
        ),
    ],
)
def test_wrong_batches_are_refused(source, target, message):
    model = Seq2Seq(Seq2SeqConfig(SOURCE, TARGET, 6, 8))
    with pytest.raises(FenchelError, match=message):
        model(source, torch.tensor([3, 3]), target)
