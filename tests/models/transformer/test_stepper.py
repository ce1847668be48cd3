"""Decoding with cached keys and values is teacher forcing, and every search runs on it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fenchel import FenchelError, entmax
from fenchel.data.vocabulary import BOS, EOS
from fenchel.search import Ensemble, beam_search, exact_search, sample
from fenchel.search.stepper import reorder
from tests.models.batches import random_batch
from tests.models.transformer.small import ATTENTIONS, small_transformer


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("attention", ATTENTIONS, ids=str)
def test_a_stepper_gives_what_teacher_forcing_gives(attention: dict[str, Any], norm: str):
    model, batch = small_transformer(norm=norm, **attention).eval(), random_batch()
    scores, weights = model(batch.source, batch.source_lengths, batch.target)
    stepper = model.stepper(batch.source, batch.source_lengths)
    state, tokens = stepper.start(3), torch.full((5, 3), BOS)
    for step in range(batch.target.shape[1]):
        probabilities, state = stepper(tokens, state)
        tokens = batch.target[:, step : step + 1].expand(-1, 3)
        expected = entmax(scores[:, step], model.config.output_alpha).unsqueeze(1)
        torch.testing.assert_close(probabilities, expected.expand(-1, 3, -1))
        assert stepper.attention is not None
        torch.testing.assert_close(stepper.attention[:, 2], weights[:, step])
    assert (weights.sum(-1) - 1).abs().max() < 1e-9


def test_in_single_precision_they_agree_to_1e_5():
    model, batch = small_transformer().float().eval(), random_batch()
    scores, _ = model(batch.source, batch.source_lengths, batch.target)
    expected = entmax(scores, model.config.output_alpha)
    stepper = model.stepper(batch.source, batch.source_lengths)
    state, tokens = stepper.start(1), torch.full((5, 1), BOS)
    for step in range(batch.target.shape[1]):
        probabilities, state = stepper(tokens, state)
        tokens = batch.target[:, step : step + 1]
        torch.testing.assert_close(probabilities[:, 0], expected[:, step], atol=1e-5, rtol=0)


def test_hypotheses_that_are_reordered_keep_their_own_past():
    model, batch = small_transformer(output_alpha=1.5).eval(), random_batch()
    targets = [random_batch(seed=seed).target for seed in (1, 2)]
    scores = [model(batch.source, batch.source_lengths, target)[0] for target in targets]
    stepper = model.stepper(batch.source, batch.source_lengths)
    state, tokens, order = stepper.start(2), torch.full((5, 2), BOS), torch.tensor([0, 1])
    for step in range(5):
        probabilities, state = stepper(tokens, state)
        for place, number in enumerate(order.tolist()):
            expected = entmax(scores[number][:, step], 1.5)
            torch.testing.assert_close(probabilities[:, place], expected)
        state = reorder(state, torch.arange(10).view(5, 2).flip(1))
        order = order.flip(0)
        tokens = torch.stack([targets[number][:, step] for number in order.tolist()], 1)


def test_a_selected_stepper_continues_with_its_sentences():
    model, batch = small_transformer().eval(), random_batch()
    stepper, rows = model.stepper(batch.source, batch.source_lengths), torch.tensor([3, 1])
    probabilities, _ = stepper(torch.full((5, 1), BOS), stepper.start(1))
    chosen = stepper.select(rows)
    assert chosen.batch_size == 2
    torch.testing.assert_close(
        chosen(torch.full((2, 1), BOS), chosen.start(1))[0], probabilities[rows]
    )


def test_only_the_new_token_is_computed_at_each_step():
    """The keys and values of the source are projected once, those of a prefix when it grows."""
    model, batch, seen = small_transformer().eval(), random_batch(), []
    layer = model.decoder.layers[0]
    layer.linear1.register_forward_hook(lambda module, args, out: seen.append(args[0].shape))
    projected = []
    original = layer.multihead_attn.project_keys
    layer.multihead_attn.project_keys = lambda *args: projected.append(1) or original(*args)
    stepper = model.stepper(batch.source, batch.source_lengths)
    state, tokens = stepper.start(2), torch.full((5, 2), BOS)
    for _ in range(4):
        _, state = stepper(tokens, state)
    assert seen == [(10, 1, 8)] * 4
    assert len(projected) == 1
    assert state[0].keys.shape == (5, 2, 2, 4, 4)


def probability(model: Any, source: torch.Tensor, tokens: tuple[int, ...]) -> float:
    target = torch.tensor([[*tokens, EOS]])
    scores, _ = model(source, torch.tensor([source.shape[1]]), target)
    p = entmax(scores, model.config.output_alpha)[0]
    return p.gather(1, target.mT).prod().item()


@pytest.mark.parametrize("attention", ATTENTIONS[:3], ids=str)
def test_searches_find_what_they_certify(attention: dict[str, Any]):
    model = small_transformer(**{**attention, "output_alpha": 1.5}).eval()
    with torch.no_grad():
        model.output.bias[EOS] = 6.0  # or else no sequence ends
    batch = random_batch()
    stepper = model.stepper(batch.source, batch.source_lengths)
    found = beam_search(stepper, width=4, max_length=6)
    best = exact_search(stepper, max_length=6, answers=1)
    for row, (beam, exact) in enumerate(zip(found, best, strict=True)):
        source = batch.source[row : row + 1]
        for hypothesis in beam.hypotheses:
            if hypothesis.finished:
                expected = probability(model, source, hypothesis.tokens)
                assert hypothesis.probability == pytest.approx(expected, rel=1e-9)
        if beam.certified and exact.certified:
            assert beam.best.probability == pytest.approx(exact.best.probability, rel=1e-9)
        assert exact.best.probability >= beam.best.probability * (1 - 1e-9)
    assert any(answer.certified for answer in found)


def test_samples_and_ensembles_run():
    models = [small_transformer(norm=norm, output_alpha=1.5).eval() for norm in ("pre", "post")]
    batch = random_batch()
    steppers = [model.stepper(batch.source, batch.source_lengths) for model in models]
    drawn = sample(Ensemble(steppers), 3, max_length=5)
    assert len(drawn) == 5


def test_a_search_beyond_the_positions_is_refused():
    model, batch = small_transformer(max_positions=8).eval(), random_batch()
    stepper = model.stepper(batch.source, batch.source_lengths)
    state, tokens = stepper.start(1), torch.full((5, 1), BOS)
    for _ in range(8):
        _, state = stepper(tokens, state)
    with pytest.raises(FenchelError, match="longer than max_positions = 8, got 9 tokens"):
        stepper(tokens, state)
