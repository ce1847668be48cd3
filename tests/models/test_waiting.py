"""A training step never reads a value, so that nothing waits for a GPU and a graph can record it.

Tensors without data stand for a GPU's: whatever has to read one of them fails.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fenchel.kernels.reference import pnormmax as reference
from fenchel.models import Seq2Seq, Seq2SeqConfig, Transformer, next_token
from fenchel.models.seq2seq.config import ATTENTIONS
from tests.models.batches import EVERY_MAP, SOURCE, TARGET, random_batch, small_model, with_map
from tests.models.transformer.small import ATTENTIONS as ATTENTIONS_OF_HEADS
from tests.models.transformer.small import small_transformer

# What makes a host wait for a GPU although it needs no number where there are none.
WAITING = {"_local_scalar_dense", "_linalg_check_errors", "nonzero", "masked_select", "equal"}


class NoWaiting(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func.overloadpacket.__name__ not in WAITING, func
        return func(*args, **(kwargs or {}))


def _step(model: Seq2Seq | Transformer) -> None:
    batch = random_batch(size=3, source=4, target=3)
    there = batch._replace(source=batch.source.to("meta"), target=batch.target.to("meta"))
    model.loss(there)  # what is made once, and on the CPU, is made before steps are recorded
    with NoWaiting():
        loss = model.loss(there)["loss"]
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)


@pytest.mark.parametrize(
    ("attention", "feeding"), [(a, True) for a in ATTENTIONS] + [("dot", False)]
)
@pytest.mark.parametrize("name", EVERY_MAP)
def test_a_step_looks_at_no_number(name: str, attention: str, feeding: bool):
    choices = with_map(name)
    config = Seq2SeqConfig(SOURCE, TARGET, 6, 8, attention=attention, input_feeding=feeding)
    _step(Seq2Seq(Seq2SeqConfig(**{**vars(config), **choices})).to("meta"))


@pytest.mark.parametrize("attention", ATTENTIONS_OF_HEADS, ids=str)
def test_a_step_of_a_transformer_looks_at_no_number(attention: dict[str, Any]):
    _step(small_transformer(dropout=0.1, **attention).to("meta"))


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_a_step_with_a_large_vocabulary_looks_at_no_number(
    alpha: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(next_token, "LARGE_VOCABULARY", 1)
    _step(small_model(output_alpha=alpha).to("meta"))


def test_what_has_to_be_read_is_noticed():
    with NoWaiting(), pytest.raises((AssertionError, RuntimeError)):
        bool(torch.empty(2, device="meta").any())
    with NoWaiting(), pytest.raises(AssertionError):
        torch.linalg.cholesky(torch.empty(2, 2, device="meta"))


@pytest.mark.parametrize("s", [1.5, 3.0, torch.full((4, 1), 1.5, device="meta")])
def test_pnormmax_away_from_the_cpu_looks_at_no_number(s: float | torch.Tensor):
    with NoWaiting():
        assert reference.pnormmax(torch.empty(4, 7, device="meta"), s).shape == (4, 7)


@pytest.mark.parametrize("s", [1.05, 1.25, 1.5, 1.75, 2.0, 3.0, 4.0])
def test_pnormmax_needs_fewer_steps_than_are_taken_without_a_look(
    s: float, monkeypatch: pytest.MonkeyPatch
):
    taken, solve = [], reference.solve_decreasing

    def counting(evaluate: Any, lower: torch.Tensor, upper: torch.Tensor, *, steps: int) -> Any:
        seen = []
        root = solve(lambda t: seen.append(t) or evaluate(t), lower, upper, steps=steps)
        taken.append((len(seen), steps))
        return root

    monkeypatch.setattr(reference, "solve_decreasing", counting)
    for scale in (0.1, 1.0, 10.0):
        for columns in (2, 80):
            reference.pnormmax(scale * torch.randn(50, columns), s)
    assert all(2 * needed <= allowed for needed, allowed in taken)
    assert {allowed for _, allowed in taken} == {20 if s <= 2 else 80}
