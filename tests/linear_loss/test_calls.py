"""The loss in chunks as a call: its module, its kernel, and its rules."""

from __future__ import annotations

import pytest
import torch

import fenchel
from tests.linear_loss.layers import CLASSES, layer, some_target

BAD = {
    "hidden and weight make a layer": {"weight": torch.zeros(7, 5)},
    "there must be a class to choose": {"weight": torch.zeros(0, 4)},
    "weight must be real: .* got NoneType": {"weight": None},
    "weight must be where hidden is": {"weight": torch.zeros(7, 4, device="meta")},
    "bias must be where hidden is": {"bias": torch.zeros(7, device="meta")},
    "target must be where hidden is": {"target": torch.zeros(11, device="meta").long()},
    "class_weight must be where the target is": {"class_weight": torch.ones(7, device="meta")},
    "alpha must be where the scores are": {"alpha": torch.ones(11, 1, device="meta")},
    "hidden must be real": {"hidden": torch.zeros(11, 4, dtype=torch.long)},
    "hidden must be dense": {"hidden": torch.zeros(11, 4).to_sparse()},
    "weight must be dense": {"weight": torch.zeros(7, 4).to_sparse()},
    "bias has one value a class": {"bias": torch.zeros(3)},
    "weight has the dtype of hidden": {"weight": torch.zeros(7, 4, dtype=torch.float64)},
    "a target of class indices must match": {"target": torch.zeros(3, dtype=torch.long)},
    "a target of probabilities must match": {"target": torch.zeros(11, 6)},
    "target must be in \\[0, 6\\]": {"target": torch.full((11,), 7)},
    "alpha must be above 0": {"alpha": 0.0},
    "alpha must broadcast": {"alpha": torch.ones(3, 1)},
    "reduction must be known": {"reduction": "average"},
    "label_smoothing is a share": {"label_smoothing": 2.0},
    "ignore_index is a class index": {"ignore_index": 1.0},
    "chunk_rows counts rows": {"chunk_rows": 0},
    "class_weight has one value a class": {"class_weight": torch.ones(3)},
    "class_weight has one value a class: .* got list": {"class_weight": [1.0] * 7},
    "class_weight must be real": {"class_weight": torch.ones(7, dtype=torch.complex64)},
    "class_weight is a constant": {"class_weight": torch.ones(7, requires_grad=True)},
}


def test_explain_names_the_kernel():
    inputs, target = layer(torch.float32), some_target("indices", torch.float32)
    choices = fenchel.explain(fenchel.linear_entmax_loss, target=target, chunk_rows=6, **inputs)
    assert [choice.operator for choice in choices] == ["entmax_loss_in_place"] * 2


def test_the_module_is_the_function():
    inputs, target = layer(torch.float32), some_target("indices", torch.float32)
    inputs.pop("alpha")
    module = fenchel.nn.LinearEntmaxLoss("learned", torch.rand(CLASSES), -7, "sum", 0.1, 4)
    options = {"ignore_index": -7, "reduction": "sum", "label_smoothing": 0.1, "chunk_rows": 4}
    target[target == -100] = -7
    arguments = (inputs["hidden"], inputs["weight"], target)
    expected = fenchel.linear_entmax_loss(
        *arguments, module.alpha, bias=inputs["bias"], class_weight=module.class_weight, **options
    )
    loss = module(*arguments, inputs["bias"])
    assert torch.equal(loss, expected)
    loss.backward()
    (exponent,) = module.parameters()
    assert exponent.grad != 0
    assert "chunk_rows=4" in repr(module)


@pytest.mark.parametrize("message", BAD)
def test_a_broken_rule_is_named(message):
    good = {name: value.detach() for name, value in layer(torch.float32).items()}
    arguments = {**good, "target": some_target("indices", torch.float32), **BAD[message]}
    with pytest.raises(fenchel.FenchelError, match=message):
        fenchel.linear_entmax_loss(**arguments)
