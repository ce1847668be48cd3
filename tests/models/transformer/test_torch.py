"""With softmax and the weights of `torch.nn.Transformer`, the model is that model."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fenchel.data.vocabulary import PAD
from fenchel.models import Transformer
from fenchel.models.next_token import tokens_before
from tests.models.batches import random_batch
from tests.models.transformer.small import small_transformer


def pair(**choices) -> tuple[Transformer, nn.Transformer]:
    """Our model and PyTorch's with the same random weights."""
    ours = small_transformer(attention_map="softmax", **choices)
    config = ours.config
    theirs = nn.Transformer(
        config.hidden_size,
        config.heads,
        config.layers,
        config.layers,
        config.feedforward_size,
        dropout=config.dropout,
        batch_first=True,
        norm_first=config.norm == "pre",
    )
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.3)
    for part in ("encoder", "decoder"):
        getattr(ours, part).load_state_dict(getattr(theirs, part).state_dict())
    return ours.float(), theirs


def run_theirs(ours: Transformer, theirs: nn.Transformer, batch) -> torch.Tensor:
    target = tokens_before(batch.target)
    padding = batch.source == PAD
    return theirs(
        ours.source_embedding(batch.source),
        ours.target_embedding(target),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
        tgt_is_causal=True,
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_softmax_with_the_weights_of_pytorch_is_pytorchs_model(norm: str, training: bool):
    ours, theirs = pair(norm=norm)
    for model in (ours, theirs):
        model.train(training)
    batch = random_batch()
    for need_weights in (True, False):
        hidden, weights = ours.hidden(
            batch.source, batch.source_lengths, batch.target, need_weights=need_weights
        )
        torch.testing.assert_close(hidden, run_theirs(ours, theirs, batch), atol=1e-5, rtol=0)
    assert weights is None


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_its_gradients_are_those_of_pytorch(norm: str):
    ours, theirs = pair(norm=norm)
    batch = random_batch()
    hidden, _ = ours.hidden(batch.source, batch.source_lengths, batch.target)
    pull = torch.randn(hidden.shape)
    hidden.backward(pull)
    run_theirs(ours, theirs, batch).backward(pull)
    expected = dict(theirs.named_parameters())
    checked = 0
    for name, parameter in ours.named_parameters():
        if name in expected:
            torch.testing.assert_close(
                parameter.grad, expected[name].grad, atol=1e-4, rtol=1e-4, msg=name
            )
            checked += 1
    assert checked == len(expected)
