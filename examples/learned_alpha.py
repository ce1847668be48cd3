"""Learn how sparse each attention head should be.

    python examples/learned_alpha.py

Two tasks are trained at once, each on one of two heads: the first head must copy a single value, the
second must average all values. With `alpha="learned"`, the first α rises towards 2 (sparsemax) and the
second falls towards 1 (softmax).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import fenchel

KEYS, SIZE, BATCH = 12, 8, 64


class TwoHeads(nn.Module):
    """Two heads, (batch, 2, KEYS) weights, each with its own α."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(SIZE, 2 * SIZE)
        self.map = fenchel.nn.Entmax(alpha="learned", heads=2)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        queries = self.query(query).unflatten(-1, (2, 1, SIZE))
        scores = queries @ keys.mT.unsqueeze(1) / SIZE**0.5
        return self.map(scores).squeeze(2)


def make_batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, keys, and the weights of the keys that the first and the second head should have."""
    keys = torch.randn(BATCH, KEYS, SIZE)
    right = torch.randint(KEYS, (BATCH,))
    one = nn.functional.one_hot(right, KEYS).float()
    return keys[torch.arange(BATCH), right], keys, one, torch.full((BATCH, KEYS), 1 / KEYS)


def main() -> Tensor:
    """Train for a few seconds, print α of both heads at the start and the end, return the latter."""
    torch.manual_seed(0)
    model = TwoHeads()
    print("α at the start:", model.map.alpha)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(300):
        query, keys, *wanted = make_batch()
        values = torch.randn(BATCH, KEYS, 1)
        errors = (model(query, keys) - torch.stack(wanted, 1)) @ values
        optimizer.zero_grad()
        errors.square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        query, keys, *_ = make_batch()
        attended = model(query, keys).count_nonzero(-1).float().mean(0)
    alpha = torch.as_tensor(model.map.alpha).detach()
    print("α at the end:  ", alpha)
    print("keys that each head attends to:", attended)
    return alpha


if __name__ == "__main__":
    main()
