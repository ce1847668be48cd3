"""Validation metrics do not depend on the batches."""

from __future__ import annotations

import pytest
import torch

from fenchel.tasks.sequences import Seq2SeqTask
from fenchel.training import validate
from tests.training.small import CODEC, TASK, TRAIN


@pytest.mark.parametrize("training", [True, False])
def test_metrics_do_not_depend_on_the_batches(training: bool, monkeypatch: pytest.MonkeyPatch):
    model, data = TASK.build_model().train(training), CODEC.encode(TRAIN)
    expected, requested = validate(TASK, model, data), []

    def few_symbols(task: Seq2SeqTask, device_type: str) -> tuple[int, int | None]:
        requested.append(device_type)
        return 2048, 40

    monkeypatch.setattr(Seq2SeqTask, "validation_batch", few_symbols)
    for batch_size in (None, 7):
        assert validate(TASK, model, data, batch_size) == pytest.approx(expected, rel=1e-6)
    assert requested[0] == "cpu"
    assert model.training is training


def test_metrics_are_means_over_all_examples():
    model, data = TASK.build_model().double(), CODEC.encode(TRAIN)
    found = validate(TASK, model, data, 7)
    with torch.no_grad():
        whole = model.eval().loss(data.batch(torch.arange(len(data))))
    assert found == pytest.approx({k: (m.total / m.count).item() for k, m in whole.items()})
