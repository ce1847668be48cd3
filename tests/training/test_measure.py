"""Figures of a data set: the same however many of its examples are taken at once."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest
import torch

from fenchel.data import Encoded
from fenchel.models import Seq2Seq
from fenchel.training import measure
from fenchel.training.sizes import AtOnce, searched_at_once, told_at_once
from tests.training.small import CODEC, MODEL, TRAIN

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def test_figures_do_not_depend_on_the_batches(monkeypatch: pytest.MonkeyPatch):
    sizes = {
        "source_size": len(CODEC.source_vocabulary),
        "target_size": len(CODEC.target_vocabulary),
    }
    model, data = Seq2Seq(replace(MODEL, **sizes)), Encoded.of(TRAIN, CODEC)
    expected = measure(model, data)
    file, asked = importlib.import_module("fenchel.training.measure"), []

    def few_symbols(device: torch.device, vocabulary: int) -> AtOnce:
        asked.append((device, vocabulary))
        return AtOnce(sentences=2048, symbols=40)

    monkeypatch.setattr(file, "told_at_once", few_symbols)
    for batch_size in (None, 7):
        assert measure(model, data, batch_size) == pytest.approx(expected, rel=1e-6)
    assert asked[0] == (CPU, model.config.target_size)


def test_a_gpu_takes_more_sentences_at_once_while_their_scores_are_few():
    assert told_at_once(CPU, 777) == AtOnce(256, None)
    assert told_at_once(GPU, 777) == AtOnce(2048, 2**16)
    assert told_at_once(GPU, 32_000).symbols == 2**27 // 32_000
    assert [searched_at_once(device, 777, width=5) for device in (CPU, GPU)] == [256, 2048]
    assert searched_at_once(GPU, 10**9, width=5) == told_at_once(GPU, 10**9).symbols == 1
