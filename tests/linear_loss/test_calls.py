"""The loss in chunks as a call: its module, its kernel, and its rules."""

from __future__ import annotations

import pytest
import torch

import fenchel
from tests.linear_loss.layers import CLASSES, layer, some_target

BAD = {
    "hidden and weight must have shapes": {"weight": torch.zeros(7, 5)},
    "there must be at least one class": {"weight": torch.zeros(0, 4)},
    "weight must be a floating-point tensor, got NoneType": {"weight": None},
    "weight must be on the device of hidden": {"weight": torch.zeros(7, 4, device="meta")},
    "bias must be on the device of hidden": {"bias": torch.zeros(7, device="meta")},
    "target must be on the device of hidden": {"target": torch.zeros(11, device="meta").long()},
    "class_weight must be on the device of the target": {
        "class_weight": torch.ones(7, device="meta")
    },
    "alpha must be on the device of the scores": {"alpha": torch.ones(11, 1, device="meta")},
    "hidden must be a floating-point tensor": {"hidden": torch.zeros(11, 4, dtype=torch.long)},
    "hidden must be dense": {"hidden": torch.zeros(11, 4).to_sparse()},
    "weight must be dense": {"weight": torch.zeros(7, 4).to_sparse()},
    "bias must have shape": {"bias": torch.zeros(3)},
    "weight must have the dtype of hidden": {"weight": torch.zeros(7, 4, dtype=torch.float64)},
    "a target of class indices must have shape": {"target": torch.zeros(3, dtype=torch.long)},
    "a target of probabilities must have shape": {"target": torch.zeros(11, 6)},
    "target must be in \\[0, 6\\]": {"target": torch.full((11,), 7)},
    "alpha must be above 0": {"alpha": 0.0},
    "alpha must have a shape that broadcasts": {"alpha": torch.ones(3, 1)},
    "reduction must be one of": {"reduction": "average"},
    "label_smoothing must be a number in": {"label_smoothing": 2.0},
    "ignore_index must be an integer": {"ignore_index": 1.0},
    "chunk_rows must be a whole number": {"chunk_rows": 0},
    "class_weight must be a tensor of shape": {"class_weight": torch.ones(3)},
    "class_weight must be a tensor of shape .* got list": {"class_weight": [1.0] * 7},
    "class_weight must be real": {"class_weight": torch.ones(7, dtype=torch.complex64)},
    "class_weight must not require grad": {"class_weight": torch.ones(7, requires_grad=True)},
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
