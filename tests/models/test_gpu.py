"""The model on a GPU, where cells and encoder are other kernels."""

from __future__ import annotations

import pytest
import torch

from fenchel.models import Seq2Seq
from fenchel.search import beam_search
from tests.implementations import needs_gpu
from tests.models.batches import random_batch, small_model

pytestmark = list(needs_gpu)


@pytest.mark.parametrize("attention", ["general", "additive"])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_a_gpu_has_the_same_loss_and_derivative(
    alpha: float, attention: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    model = small_model(attention=attention, attention_alpha=alpha, output_alpha=alpha, spread=3.0)
    batch = random_batch()
    on_gpu = Seq2Seq(model.config).cuda()
    on_gpu.load_state_dict(model.state_dict())
    there = batch._replace(source=batch.source.cuda(), target=batch.target.cuda())
    results = []
    for each, data in ((model, batch), (on_gpu, there)):
        loss, statistics = each.loss(data)
        loss.backward()
        results.append([loss, statistics.stacked(), *(p.grad for p in each.parameters())])
    for theirs, ours in zip(*results, strict=True):
        scale = theirs.abs().max().clamp(min=1e-3)
        torch.testing.assert_close(
            ours.cpu().double() / scale, theirs.double() / scale, atol=1e-4, rtol=0
        )


def test_a_gpu_searches_and_rounds():
    model, batch = small_model(spread=2.0).float().cuda(), random_batch()
    there = batch._replace(source=batch.source.cuda(), target=batch.target.cuda())
    exact, _ = model.loss(there)
    with torch.autocast("cuda", torch.bfloat16):
        rounded, _ = model.loss(there)
    rounded.backward()
    assert rounded.item() == pytest.approx(exact.item(), rel=0.02)
    stepper = model.eval().stepper(there.source, there.source_lengths)
    assert len(beam_search(stepper, width=3, max_length=5)) == 5
