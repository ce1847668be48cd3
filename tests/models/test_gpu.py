"""The models on a GPU, where cells, encoder and attention are other kernels."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from fenchel.models import Seq2Seq, Transformer
from fenchel.models.means import stack_means
from fenchel.search import beam_search
from tests.implementations import needs_gpu
from tests.models.batches import random_batch, small_model
from tests.models.transformer.small import ATTENTIONS, small_transformer

pytestmark = list(needs_gpu)


@pytest.mark.parametrize("attention", ["general", "additive"])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_a_gpu_has_the_same_loss_and_derivative(
    alpha: float, attention: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    _compare(
        small_model(attention=attention, attention_alpha=alpha, output_alpha=alpha, spread=3.0)
    )


@pytest.mark.parametrize("attention", ATTENTIONS, ids=str)
def test_a_transformer_has_the_same_loss_and_derivative_on_a_gpu(
    attention: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    _compare(small_transformer(spread=1.0, **attention))


def _compare(model: Seq2Seq | Transformer) -> None:
    batch = random_batch()
    on_gpu = copy.deepcopy(model).float().cuda()
    there = batch._replace(source=batch.source.cuda(), target=batch.target.cuda())
    results = []
    for each, data in ((model, batch), (on_gpu, there)):
        means = each.loss(data)
        loss = means["loss"].total
        loss.backward()
        results.append([loss, stack_means(means), *(p.grad for p in each.parameters())])
    for theirs, ours in zip(*results, strict=True):
        scale = theirs.abs().max().clamp(min=1e-3)
        torch.testing.assert_close(
            ours.cpu().double() / scale, theirs.double() / scale, atol=1e-4, rtol=0
        )


@pytest.mark.parametrize("small", [small_model, small_transformer])
def test_a_gpu_searches_and_rounds(small: Callable[..., Any]):
    model, batch = small(spread=2.0).float().cuda(), random_batch()
    there = batch._replace(source=batch.source.cuda(), target=batch.target.cuda())
    exact = model.loss(there)["loss"].total
    with torch.autocast("cuda", torch.bfloat16):
        rounded = model.loss(there)["loss"].total
    rounded.backward()
    assert rounded.item() == pytest.approx(exact.item(), rel=0.02)
    stepper = model.eval().stepper(there.source, there.source_lengths)
    assert len(beam_search(stepper, width=3, max_length=5)) == 5
