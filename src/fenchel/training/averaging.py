"""The mean of the weights of the last validations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from fenchel.training.checkpoint import fitting_weights
from fenchel.training.files import load_tensors


@contextmanager
@torch.no_grad()
def averaged_weights(model: nn.Module, earlier: Sequence[Path]) -> Iterator[None]:
    """Within the context, a model has the mean of its own weights and of those stored in some files.

    Its own weights are restored to the last bit. A running mean leaves equal values as they are.
    """
    if not earlier:
        yield
        return
    own = {name: value.clone() for name, value in model.state_dict().items()}
    means = {name: value.clone() for name, value in own.items()}
    for count, path in enumerate(earlier, start=2):
        for name, value in fitting_weights(model, load_tensors(path), path).items():
            means[name] += (value.to(means[name].device) - means[name]) / count
    model.load_state_dict(means)
    try:
        yield
    finally:
        model.load_state_dict(own)
