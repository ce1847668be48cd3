"""Attend to an interval of a signal instead of its samples.

    python examples/continuous_attention.py

A signal of 100 noisy samples has a bump at a place that the query names. Continuous attention learns a
density over time: for α = 2 a truncated parabola, zero outside an interval.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.continuous import GaussianBasis, Mixture
from fenchel.nn import ContinuousAttention1d

SAMPLES, BATCH = 100, 64


def make_signals(draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Places (B, 1), signals (B, SAMPLES, 1) with a bump there, and heights of the bumps (B, 1)."""
    t = (torch.arange(SAMPLES) + 0.5) / SAMPLES
    place = 0.1 + 0.8 * torch.rand(BATCH, 1, generator=draw)
    height = torch.randn(BATCH, 1, generator=draw)
    bump = height * torch.exp(-0.5 * ((t - place) / 0.05) ** 2)
    noise = 0.1 * torch.randn(BATCH, SAMPLES, generator=draw)
    return place, (bump + noise).unsqueeze(-1), height


def main() -> tuple[float, Mixture]:
    """Train for a few seconds; print and return the error, and the densities of one batch."""
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(0)
    layer = ContinuousAttention1d.pooled(1, GaussianBasis.grid(32, (0.03, 0.1)), alpha=2.0)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for step in range(300):
        place, signal, height = make_signals(draw)
        context, density = layer(place, signal)
        loss = (context - height).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 or step == 299:
            print(f"step {step:<4} squared error {loss.item():.3f}")
    component = density.distribution(alpha=2.0).component_distribution
    width = component.support.upper_bound - component.support.lower_bound
    print(f"intervals have a mean length of {width.mean().item():.3f} of the signal")
    return loss.item(), density


if __name__ == "__main__":
    main()
