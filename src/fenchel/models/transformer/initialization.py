"""The initial weights of the Transformer models."""

from __future__ import annotations

import torch
from torch import nn

from fenchel.data.vocabulary import PAD
from fenchel.mechanisms.multihead import MultiheadAttention


def draw_seed() -> int:
    """A seed from PyTorch's generator, for `initialize`."""
    return int(torch.randint(2**62, (), device="cpu"))


@torch.no_grad()
def initialize(model: nn.Module, seed: int) -> None:
    """Draw all weights: Xavier for projections, normal with variance 1 / H for embeddings, no biases.

    Normalizations and learned α keep the values of their modules. If `seed` is drawn before the
    modules are created, the weights do not depend on whether there are random α.
    """
    device = next(model.parameters()).device
    if device.type == "meta":
        return
    generator = torch.Generator(device).manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)
        elif isinstance(module, MultiheadAttention):
            for weight in module.in_proj_weight.chunk(3):
                nn.init.xavier_uniform_(weight, generator=generator)
    # After the output layer, which may have the same weights.
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5, generator=generator)
            module.weight[PAD] = 0
