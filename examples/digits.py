"""Classify handwritten digits by attention to their pixels, with softmax and with entmax.

    python examples/digits.py [--seeds 5] [--epochs 30] [--picture digits.png]

The same model is trained with softmax, with 1.5-entmax, and with a learned α per head. The data
comes with scikit-learn (`pip install '.[train,plot]'`); five seeds take less than a minute on one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import fenchel
from fenchel.plot.style import add_colour_bar, draw_weights, new_figure

SIDE, CLASSES = 8, 10
WIDTH, HEADS, QUERIES = 32, 4, 4
BATCH, RATE = 64, 3e-3
TRAINING = 1200  # training images; the other 597 are test images
SHOWN = 6  # images in the picture

Alpha = float | str


class Variant(NamedTuple):
    """The α of the attention, and the α of the loss and of the class probabilities."""

    attention: Alpha
    loss: float


VARIANTS = {
    "softmax": Variant(1.0, 1.0),
    "1.5-entmax": Variant(1.5, 1.5),
    "learned α per head": Variant("learned", 1.5),
}


class Digits(NamedTuple):
    images: Tensor  # (images, pixels), in [0, 1]
    labels: Tensor


class Classifier(nn.Module):
    """Learned queries attend to the pixels; a linear layer classifies what they return."""

    def __init__(self, alpha: Alpha) -> None:
        super().__init__()
        self.pixel = nn.Linear(1, WIDTH)
        self.position = nn.Parameter(torch.randn(SIDE * SIDE, WIDTH))
        self.query = nn.Parameter(torch.randn(QUERIES, WIDTH))
        self.attention = fenchel.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, alpha=alpha)
        self.classes = nn.Linear(QUERIES * WIDTH, CLASSES)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return the class scores and the attention weights (images, heads, queries, pixels)."""
        pixels = self.pixel(images.unsqueeze(-1)) + self.position
        queries = self.query.expand(len(images), -1, -1)
        context, weights = self.attention(queries, pixels, pixels, average_attn_weights=False)
        return self.classes(context.flatten(1)), weights


def digits() -> tuple[Digits, Digits]:
    """Return the training and the test images."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    data = Digits(torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels))
    training, test = (
        Digits(data.images[part], data.labels[part]) for part in order.tensor_split([TRAINING])
    )
    return training, test


def train(variant: Variant, data: Digits, *, seed: int, epochs: int) -> Classifier:
    torch.manual_seed(seed)
    model = Classifier(variant.attention)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    for _ in range(epochs):
        for batch in torch.randperm(len(data.labels)).split(BATCH):
            scores, _ = model(data.images[batch])
            loss = fenchel.entmax_loss(scores, data.labels[batch], variant.loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


@torch.no_grad()
def measure(model: Classifier, variant: Variant, data: Digits) -> dict[str, float]:
    scores, weights = model(data.images)
    p = fenchel.entmax(scores, variant.loss)
    possible = p > 0
    correct = possible.gather(-1, data.labels.unsqueeze(-1))
    return {
        "accuracy, %": 100 * (p.argmax(-1) == data.labels).float().mean().item(),
        "pixels attended to by a query": (weights > 0).sum(-1).float().mean().item(),
        "classes with p > 0": possible.sum(-1).float().mean().item(),
        "correct class has p > 0, %": 100 * correct.float().mean().item(),
    }


def table(metrics: Mapping[str, Sequence[dict[str, float]]]) -> str:
    """Return the means over the seeds as a table."""
    names = list(next(iter(metrics.values()))[0])
    width = max(map(len, names))
    lines = [" " * width + "".join(f"{variant:>20}" for variant in metrics)]
    for name in names:
        means = [sum(run[name] for run in runs) / len(runs) for runs in metrics.values()]
        lines.append(f"{name:<{width}}" + "".join(f"{mean:20.1f}" for mean in means))
    return "\n".join(lines)


@torch.no_grad()
def draw(models: Mapping[str, Classifier], data: Digits, path: Path) -> None:
    """Draw some images, and the weights of the first query of the first head of each model."""
    images = data.images[:SHOWN]
    weights = {name: model(images)[1][:, 0, 0] for name, model in models.items()}
    figure = new_figure(1.1 * SHOWN + 1.8, 1.25 * (1 + len(models)))
    rows = figure.subplots(1 + len(models), SHOWN)
    for ax, image in zip(rows[0], images, strict=True):
        ax.imshow(image.view(SIDE, SIDE).numpy(), cmap="Greys")
    for row, each in zip(rows[1:], weights.values(), strict=True):
        for ax, p in zip(row, each, strict=True):
            drawn = draw_weights(ax, p.view(SIDE, SIDE), largest=1.0)
            ax.set_xlabel(f"{int((p > 0).sum())} of {len(p)}", fontsize=8)
    for row, name in zip(rows, ("image", *weights), strict=True):
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    for ax in rows.flat:
        ax.set(xticks=[], yticks=[])
    add_colour_bar(drawn, rows[1:], "weight (white: 0)")
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Classify handwritten digits with dense and with sparse attention."
    )
    parser.add_argument("--seeds", type=int, default=5, help="number of trainings per variant")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--picture", type=Path, help="file for a picture of the weights")
    options = parser.parse_args(arguments)
    training, test = digits()
    metrics, models = {}, {}
    for name, variant in VARIANTS.items():
        runs = [
            train(variant, training, seed=seed, epochs=options.epochs)
            for seed in range(options.seeds)
        ]
        metrics[name], models[name] = [measure(model, variant, test) for model in runs], runs[0]
    print(table(metrics))
    if options.picture:
        draw(models, test, options.picture)
        print(f"drew {options.picture}")


if __name__ == "__main__":
    main()
