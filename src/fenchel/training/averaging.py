"""Averages of the weights of the last validations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from fenchel.training.checkpoint import matching_weights
from fenchel.training.files import load_tensors


@contextmanager
@torch.no_grad()
def averaged_weights(model: nn.Module, earlier: Sequence[Path]) -> Iterator[None]:
    """Give a model the mean of its own weights and those stored in some files, inside a `with` block.

    Afterwards its own weights are restored exactly. The mean is a running one, so that equal values stay
    exactly equal.
    """
    if not earlier:
        yield
        return
    own = {name: value.clone() for name, value in model.state_dict().items()}
    means = {name: value.clone() for name, value in own.items()}
    for count, path in enumerate(earlier, start=2):
        for name, value in matching_weights(model, load_tensors(path), path).items():
            means[name] += (value.to(means[name].device) - means[name]) / count
    model.load_state_dict(means)
    try:
        yield
    finally:
        model.load_state_dict(own)
