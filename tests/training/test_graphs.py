"""Recorded steps: the same gradients as plain ones, whatever the padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fenchel import FenchelError
from fenchel.models import Seq2Seq, next_token
from fenchel.tasks.sequences import Seq2SeqTask
from fenchel.training import TrainingConfig
from fenchel.training.graphs import GraphedSteps, records_steps
from tests.implementations import needs_gpu
from tests.models.batches import EVERY_MAP, random_batch, small_model, with_map
from tests.training.small import fit_small

FIELDS = Seq2SeqTask.recordable_fields
on_gpu = pytest.mark.parametrize("device", [pytest.param("cuda", marks=needs_gpu)])


def _gradients(model: Seq2Seq) -> list[torch.Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def _plain(model: Seq2Seq, batch, clip: float | None) -> list[torch.Tensor]:
    model.zero_grad()
    loss = model.loss(batch)["loss"]
    (loss.total / loss.count).backward()
    if clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    return _gradients(model)


def _check(model: Seq2Seq, to: Callable, clip: float | None, record, tolerance: float) -> int:
    batches = [to(random_batch(*sizes)) for sizes in ((5, 7, 6), (3, 8, 5), (5, 9, 6), (5, 7, 6))]
    expected = [_plain(model, batch, clip) for batch in batches]
    steps = GraphedSteps(model, 5, FIELDS, clip=clip, record=record)
    for batch, plain in zip(batches, expected, strict=True):
        steps(batch, seed=3)
        for ours, theirs in zip(_gradients(model), plain, strict=True):
            torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)
    return len(steps._shapes)


@pytest.mark.parametrize(
    ("name", "clip"), [("entmax", None), *((name, 0.01) for name in EVERY_MAP)]
)
def test_recorded_steps_have_the_gradients_of_plain_ones(name: str, clip: float | None):
    """A recording that calls the step again, so that only padding and buffers are tested."""
    recorded = []

    def record(step: Callable[[], None]) -> Callable[[], None]:
        recorded.append(step)
        return step

    shapes = _check(small_model(**with_map(name)), lambda batch: batch, clip, record, 1e-10)
    assert shapes == len(recorded) == 2


def test_graphs_without_a_gpu_are_refused(tmp_path: Path):
    with pytest.raises(FenchelError, match="requires a single process on a GPU, got 1 on cpu"):
        fit_small(tmp_path / "run", cuda_graphs=True)


@pytest.mark.parametrize(
    ("settings", "gpus", "recorded"),
    [
        ({}, 1, True),
        ({}, 0, False),
        ({}, 2, False),
        ({"devices": 1}, 2, True),
        ({"nodes": 2}, 1, False),
        ({"accelerator": "cpu"}, 1, False),
        ({"precision": "bf16-mixed"}, 1, False),
        ({"cuda_graphs": False}, 1, False),
    ],
)
def test_steps_are_recorded_wherever_they_can_be(
    settings: dict[str, Any], gpus: int, recorded: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert records_steps(TrainingConfig(**settings), FIELDS) is recorded
    assert not records_steps(TrainingConfig(**settings), ())


@pytest.mark.parametrize(
    "settings", [{"precision": "bf16-mixed"}, {"batch_tokens": 100}, {"accumulate": 2}]
)
def test_only_plain_steps_can_be_recorded(settings: dict[str, Any]):
    with pytest.raises(FenchelError, match="cuda_graphs requires full precision"):
        TrainingConfig(cuda_graphs=True, **settings)


def test_a_task_without_recordable_fields_is_refused():
    with pytest.raises(FenchelError, match="cuda_graphs cannot be used with this task"):
        records_steps(TrainingConfig(cuda_graphs=True), ())


def _cuda(batch):
    return batch._replace(source=batch.source.cuda(), target=batch.target.cuda())


@on_gpu
def test_a_replayed_graph_has_the_gradients_of_plain_steps(device: str):
    model = small_model(spread=2.0).float().cuda()
    assert _check(model, _cuda, 0.5, None, 2e-3) == 2


@on_gpu
@pytest.mark.parametrize("attention", ["general", "additive"])
@pytest.mark.parametrize("name", EVERY_MAP)
def test_every_map_can_be_recorded(name: str, attention: str, device: str):
    model = small_model(spread=2.0, attention=attention, **with_map(name)).float().cuda()
    assert _check(model, _cuda, 0.5, None, 2e-3) == 2


@on_gpu
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_a_large_vocabulary_can_be_recorded(
    alpha: float, device: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(next_token, "LARGE_VOCABULARY", 1)
    model = small_model(spread=2.0, output_alpha=alpha).float().cuda()
    assert _check(model, _cuda, 0.5, None, 2e-3) == 2


@on_gpu
def test_the_seed_of_a_replay_determines_its_dropout(device: str):
    model = Seq2Seq(replace(small_model().config, dropout=0.3)).cuda()
    steps, batch, seen = GraphedSteps(model, 5, FIELDS), _cuda(random_batch()), []
    for seed in (1, 2, 1):
        steps(batch, seed)
        seen.append(_gradients(model)[0])
    torch.testing.assert_close(seen[0], seen[2])
    assert not torch.allclose(seen[0], seen[1], rtol=0.01)


@on_gpu
def test_training_with_graphs_learns(device: str, tmp_path: Path):
    pytest.importorskip("lightning", reason="the extra 'train' is not installed")
    result = fit_small(
        tmp_path / "run", epochs=8, cuda_graphs=True, accelerator="gpu", monitor="exact"
    )
    assert result.best["exact"] > 0.6
