"""The co-attention network: attention to the cells of an image, or to an ellipse."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fenchel import FenchelError
from fenchel.data.visual_questions import UNKNOWN_ANSWER, VisualQuestionBatch
from fenchel.models import VisualQuestionConfig, VisualQuestionModel
from fenchel.models.visual_questions import ATTENTIONS

GRID, ANSWERS = 3, 5


def _batch(size: int = 4, longest: int = 6) -> VisualQuestionBatch:
    torch.manual_seed(0)
    lengths = torch.tensor([longest, 2, 3, 4][:size])
    tokens = torch.randint(4, 20, (size, longest))
    tokens = tokens.masked_fill(torch.arange(longest) >= lengths[:, None], 0)
    grids = torch.randn(size, GRID**2, 1280)
    return VisualQuestionBatch(tokens, lengths, grids, torch.randint(ANSWERS, (size,)))


def _model(**choices: Any) -> VisualQuestionModel:
    torch.manual_seed(1)
    sizes = {"embedding_size": 6, "hidden_size": 8, "heads": 2, "layers": 1, "dropout": 0.0}
    config = VisualQuestionConfig(20, ANSWERS, GRID, **{**sizes, "feedforward_size": 8, **choices})
    return VisualQuestionModel(config)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", ["softmax", "sparsemax"])
def test_weights_are_distributions_over_words_and_cells(name: str, attention: str):
    batch = _batch()
    scores, attended = _model(attention=attention, attention_map=name)(*batch[:3])
    assert scores.shape == (4, ANSWERS)
    assert attended.words[batch.tokens == 0].abs().max() == 0
    for weights in (attended.words, attended.cells):
        torch.testing.assert_close(weights.sum(-1), torch.ones(4))
    assert (attended.density is None) == (attention == "discrete")


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_padding_and_the_other_questions_of_a_batch_do_not_matter(attention: str):
    model, batch = _model(attention=attention).eval(), _batch()
    scores, _ = model(*batch[:3])
    alone, _ = model(batch.tokens[1:2, :2], batch.lengths[1:2], batch.grids[1:2])
    torch.testing.assert_close(alone, scores[1:2])


@pytest.mark.parametrize("alpha", [1, 2])
def test_the_density_has_the_mean_of_the_cells_and_no_parameters(alpha: int):
    discrete, continuous = _model(), _model(attention="moments", continuous_alpha=alpha)
    count = {sum(p.numel() for p in model.parameters()) for model in (discrete, continuous)}
    assert len(count) == 1
    _, attended = continuous(*_batch()[:3])
    assert attended.density is not None
    middles = (torch.arange(GRID) + 0.5) / GRID
    places = torch.stack([middles.repeat(GRID), middles.repeat_interleave(GRID)], -1)
    torch.testing.assert_close(attended.density.loc[:, 0, 0], attended.cells @ places)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("alpha", [1, 2])
def test_every_parameter_has_a_gradient(attention: str, alpha: int):
    model = _model(attention=attention, continuous_alpha=alpha)
    model.loss(_batch())["loss"].total.backward()
    zero = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert not zero


def test_an_answer_that_the_model_does_not_know_has_no_loss_and_is_wrong():
    model, batch = _model().eval(), _batch()
    unknown = batch._replace(answers=torch.full_like(batch.answers, UNKNOWN_ANSWER))
    means = model.loss(unknown)
    assert means["loss"].total == 0
    assert means["accuracy"].total == 0
    assert means["accuracy"].count == 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"attention": "continuous"}, "attention"),
        ({"attention_bases": 10}, "attention_bases must be a square number, got 10"),
        ({"continuous_alpha": 1.5}, "continuous_alpha must be 1 or 2, got 1.5"),
        ({"heads": 3}, "hidden_size must be divisible by heads"),
        ({"basis_width": 0.0}, "basis_width must be"),
        ({"attention": "moments", "attention_map": "budget"}, "weights that sum to one"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any], message: str):
    with pytest.raises(FenchelError, match=message):
        _model(**wrong)
