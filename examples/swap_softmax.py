"""Replace softmax by entmax in a model that was trained with softmax, and fine-tune it.

    python examples/swap_softmax.py

A query must find the one of 20 keys that marks the answer. The attention is an `nn.Module` of ten lines;
the only change is the map from scores to weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import fenchel

KEYS, SIZE, BATCH = 20, 16, 64


class Attention(nn.Module):
    """Dot-product attention of a query to keys, with any map."""

    def __init__(self, map: nn.Module) -> None:
        super().__init__()
        self.query = nn.Linear(SIZE, SIZE)
        self.map = map

    def forward(self, query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        scores = torch.einsum("bd,bkd->bk", self.query(query), keys) / SIZE**0.5
        weights = self.map(scores)
        return torch.einsum("bk,bkd->bd", weights, values), weights


def make_batch(draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Noisy copies of a query's key among others, and the value that belongs to it."""
    keys = torch.randn(BATCH, KEYS, SIZE, generator=draw)
    values = torch.randn(BATCH, KEYS, SIZE, generator=draw)
    right = torch.randint(KEYS, (BATCH,), generator=draw)
    rows = torch.arange(BATCH)
    query = keys[rows, right] + 0.2 * torch.randn(BATCH, SIZE, generator=draw)
    return query, keys, values, values[rows, right]


def train(model: Attention, steps: int, draw: torch.Generator) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        *inputs, answer = make_batch(draw)
        context, _ = model(*inputs)
        optimizer.zero_grad()
        (context - answer).square().mean().backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model: Attention, draw: torch.Generator) -> tuple[float, float]:
    """The mean squared error, and the number of keys with a weight above zero."""
    *inputs, answer = make_batch(draw)
    context, weights = model(*inputs)
    error = (context - answer).square().mean().item()
    return error, (weights > 0).sum(-1).float().mean().item()


def main() -> dict[str, tuple[float, float]]:
    """Train with softmax, swap the map, fine-tune; print the error and the support of each model."""
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(0)
    model = Attention(fenchel.nn.Softmax())
    train(model, 200, draw)
    found = {"softmax": evaluate(model, draw)}
    model.map = fenchel.nn.Entmax(alpha=1.5)  # the weights of the model stay as they are
    found["swapped"] = evaluate(model, draw)
    train(model, 50, draw)
    found["fine-tuned"] = evaluate(model, draw)
    for name, (error, support) in found.items():
        print(
            f"{name:<11} error {error:.4f}   keys with a weight above zero {support:.1f} of {KEYS}"
        )
    return found


if __name__ == "__main__":
    main()
