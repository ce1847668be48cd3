"""Heads of made-up models, for tests of the view and for screenshots of it."""

from __future__ import annotations

import torch

import fenchel
from fenchel.report import HeadEntry, HeadsView, ModelHeads, SentenceAttention, Trajectories
from fenchel.report.heads import KINDS, HeadKey, sparse_rows

SENTENCES = [
    (
        "ein brauner Hund springt über den nie@@ dri@@ gen Zaun im Gar@@ ten .",
        "<s> a brown dog jumps over the low fence in the gar@@ den .",
    ),
    ("was hält der Mann in der Hand ?", "<s> what is the man holding in his hand ?"),
    (
        "drei jun@@ ge Frauen in bun@@ ten Klei@@ dern tan@@ zen auf einer Büh@@ ne vor Publi@@ kum .",
        "<s> three young women in col@@ our@@ ful dresses dance on a stage in front of an audience .",
    ),
]
OFFSETS = {"previous token": -1, "current token": 0, "next token": 1}


def example_view(
    models: int = 1, layers: int = 3, heads: int = 8, sentences: int = 3, epochs: int = 12
) -> HeadsView:
    """One or two models: the first with a learned α per head, the second with softmax."""
    names = ["α-entmax", "softmax"][:models]
    return HeadsView([_model(name, layers, heads, sentences, epochs) for name in names])


def _model(name: str, layers: int, heads: int, sentences: int, epochs: int) -> ModelHeads:
    random = torch.Generator().manual_seed(0)
    keys = [
        HeadKey(kind, layer, head)
        for kind in KINDS
        for layer in range(1, layers + 1)
        for head in range(1, heads + 1)
    ]
    learned = name != "softmax"
    last = 1 + torch.sigmoid(1.5 * torch.randn(len(keys), generator=random))
    steps = torch.linspace(1, 0, epochs)[:, None]
    noise = 0.02 * torch.randn(epochs, len(keys), generator=random) * steps
    curves = (last + (1.5 - last) * steps**2 - 0.25 * steps * (1 - steps) + noise).clamp(1, 2)
    alphas = last if learned else torch.ones(len(keys))
    biases = [int(torch.randint(5, (), generator=random)) for _ in keys]
    texts = [
        (source.split(), target.split())
        for source, target in (SENTENCES[k % len(SENTENCES)] for k in range(sentences))
    ]
    matrices = [
        {
            key: _weights(key, text, float(alpha), bias, random)
            for key, alpha, bias in zip(keys, alphas, biases, strict=True)
        }
        for text in texts
    ]
    return ModelHeads(
        name,
        [
            HeadEntry(
                *key,
                density=_mean([(p[key] != 0).float().mean() for p in matrices]),
                alpha=float(alpha),
                roles=_roles(key, [p[key] for p in matrices]),
            )
            for key, alpha in zip(keys, alphas, strict=True)
        ],
        [
            SentenceAttention(*text, {key: sparse_rows(p.tolist()) for key, p in matrix.items()})
            for text, matrix in zip(texts, matrices, strict=True)
        ],
        Trajectories(
            "epoch",
            list(range(1, epochs + 1)),
            {key: curves[:, k].tolist() for k, key in enumerate(keys)},
        )
        if learned
        else None,
    )


def _weights(
    key: HeadKey,
    text: tuple[list[str], list[str]],
    alpha: float,
    bias: int,
    random: torch.Generator,
) -> torch.Tensor:
    """Random attention, of some heads mostly at one offset."""
    queries, keys = (
        dict(zip(("source", "target"), text, strict=True))[s] for s in KINDS[key.kind][1:]
    )
    scores = 1.2 * torch.randn(len(queries), len(keys), generator=random)
    if bias < len(OFFSETS):
        offset = [*OFFSETS.values()][bias]
        distance = torch.arange(len(keys)) - torch.arange(len(queries))[:, None] - offset
        scores += torch.where(distance == 0, 1.5 + 2 * alpha, 0.0)
    future = torch.ones(len(queries), len(keys), dtype=torch.bool).triu(1)
    seen = ~future if key.kind == "decoder" else torch.ones_like(future)
    return fenchel.entmax(scores, alpha, mask=seen)


def _roles(key: HeadKey, matrices: list[torch.Tensor]) -> dict[str, float | None]:
    roles: dict[str, float | None] = {
        name: _mean([p.diagonal(offset).mean() for p in matrices])
        for name, offset in OFFSETS.items()
    }
    if key.kind == "context":
        roles = dict.fromkeys(roles)
    merging = None if key.kind == "context" else 0.5 * float(matrices[0].max(-1).values.mean())
    return {**roles, "subword merging": merging, "interrogation": float(matrices[0][:, -1].mean())}


def _mean(values: list[torch.Tensor]) -> float:
    return float(torch.stack(values).mean())
