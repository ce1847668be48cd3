"""The baseline of the table of speeds is the model that it is compared with."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from fenchel.models import Transformer
from fenchel.models.transformer import TransformerConfig
from fenchel.recipes.reproductions.torch_transformer import TorchTransformer
from tests.models.batches import random_batch
from tests.models.transformer.small import small_transformer


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_baseline_has_the_loss_of_the_softmax_model(norm: str):
    changes = {"attention_map": "softmax", "dropout": 0.0, "norm": norm, "label_smoothing": 0.0}
    ours: Transformer = small_transformer(**changes).float().train()
    config: TransformerConfig = ours.config
    theirs = TorchTransformer(config).train()
    weights = ours.state_dict()
    for name in list(weights):
        if name.startswith(("encoder.", "decoder.")):
            weights[f"transformer.{name}"] = weights.pop(name)
    theirs.load_state_dict(weights)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    batch = random_batch()
    mine, other = (model.loss(batch, describe=False)["loss"] for model in (ours, theirs))
    assert_close(mine.total, other.total, rtol=1e-5, atol=1e-5)
    assert torch.equal(mine.count, other.count)
