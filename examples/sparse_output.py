"""Train a classifier whose answers can have a probability of exactly zero.

    python examples/sparse_output.py

The 1.5-entmax loss takes scores and class indices, as `F.cross_entropy` does. The data are points around
four centers. Far from the boundaries between the classes, a single class has probability 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import fenchel

CENTERS = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 5.5]])


def make_points(count: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    label = torch.randint(len(CENTERS), (count,), generator=draw)
    return CENTERS[label] + torch.randn(count, 2, generator=draw), label


def main() -> dict[str, float]:
    """Train, print and return the accuracy, the size of the support, and how often it has the label."""
    torch.manual_seed(0)
    points, label = make_points(500, seed=0)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, len(CENTERS)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        loss = fenchel.entmax_loss(model(points), label, alpha=1.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    points, label = make_points(500, seed=1)
    with torch.no_grad():
        p = fenchel.entmax(model(points), alpha=1.5)
    figures = {
        "accuracy": (p.argmax(-1) == label).float().mean().item(),
        "classes with p > 0": (p > 0).sum(-1).float().mean().item(),
        "one class has p = 1": (p == 1).any(-1).float().mean().item(),
        "label has p > 0": (p.gather(-1, label.unsqueeze(-1)) > 0).float().mean().item(),
    }
    for name, value in figures.items():
        print(f"{name:<20} {value:.3f}")
    return figures


if __name__ == "__main__":
    main()
