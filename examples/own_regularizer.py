"""Define a regularizer, and get its map, its smoothed maximum and its loss.

    python examples/own_regularizer.py

Ω(p) = ½‖p‖² + ½‖Dp‖² penalizes second differences, so neighbours get similar weights without becoming
equal. `fenchel.Custom` solves argmax ⟨p, x⟩ − Ω(p) and differentiates the solution.
"""

from __future__ import annotations

import torch
from torch import Tensor

import fenchel


def smooth(p: Tensor) -> Tensor:
    """½‖p‖² + ½‖Dp‖² along the last dimension, for second differences D."""
    return p.square().sum(-1) / 2 + p.diff(n=2, dim=-1).square().sum(-1) / 2


def main() -> Tensor:
    """Print three maps of the same scores and the loss of the new one; return its probabilities."""
    scores = torch.tensor([0.1, 0.2, 0.9, 0.3, 0.8, 0.2, 0.1], requires_grad=True)
    omega = fenchel.Custom(smooth)
    p = omega.map(scores)
    for name, weights in (
        ("softmax", fenchel.softmax(scores)),
        ("sparsemax", fenchel.sparsemax(scores)),
        ("smooth", p),
    ):
        print(f"{name:<10}", " ".join(f"{weight:.2f}" for weight in weights.tolist()))

    loss = omega.loss(scores, torch.tensor(2))
    (gradient,) = torch.autograd.grad(loss, scores)
    print(f"smoothed maximum {omega.max(scores).item():.3f}, loss for index 2 {loss.item():.3f}")
    print("gradient  ", " ".join(f"{entry:.2f}" for entry in gradient.tolist()))
    return p.detach()


if __name__ == "__main__":
    main()
