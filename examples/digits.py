"""Handwritten digits, read by a few queries: what changes where attention and answers may be zero.

    python examples/digits.py [--seeds 5] [--epochs 30] [--picture digits.png]

The same model is trained with softmax, with 1.5-entmax, and with a learned α for each head. The data
comes with scikit-learn (`pip install '.[train,plot]'`); five seeds take half a minute on one core.
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

SIDE, CLASSES = 8, 10
WIDTH, HEADS, QUERIES = 32, 4, 4
BATCH, RATE = 64, 3e-3
TRAINING = 1200  # images; the other 597 are to test with
SHOWN = 6  # images in the picture

Alpha = float | str


class Variant(NamedTuple):
    """The α of the attention, and that of the loss and of the probabilities of the classes."""

    attention: Alpha
    loss: float


VARIANTS = {
    "softmax": Variant(1.0, 1.0),
    "1.5-entmax": Variant(1.5, 1.5),
    "a learned α a head": Variant("learned", 1.5),
}


class Digits(NamedTuple):
    images: Tensor  # (images, pixels), in [0, 1]
    labels: Tensor


class Reader(nn.Module):
    """Learned queries attend to the pixels; what they find is classified."""

    def __init__(self, alpha: Alpha) -> None:
        super().__init__()
        self.pixel = nn.Linear(1, WIDTH)
        self.place = nn.Parameter(torch.randn(SIDE * SIDE, WIDTH))
        self.query = nn.Parameter(torch.randn(QUERIES, WIDTH))
        self.attention = fenchel.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, alpha=alpha)
        self.classes = nn.Linear(QUERIES * WIDTH, CLASSES)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The scores of the classes, and where was looked: (images, heads, queries, pixels)."""
        pixels = self.pixel(images.unsqueeze(-1)) + self.place
        queries = self.query.expand(len(images), -1, -1)
        found, weights = self.attention(queries, pixels, pixels, average_attn_weights=False)
        return self.classes(found.flatten(1)), weights


def digits() -> tuple[Digits, Digits]:
    """What to learn from, and what to test with."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    whole = Digits(torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels))
    learn, test = (
        Digits(whole.images[part], whole.labels[part]) for part in order.tensor_split([TRAINING])
    )
    return learn, test


def train(variant: Variant, data: Digits, *, seed: int, epochs: int) -> Reader:
    torch.manual_seed(seed)
    model = Reader(variant.attention)
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
def measure(model: Reader, variant: Variant, data: Digits) -> dict[str, float]:
    scores, weights = model(data.images)
    p = fenchel.entmax(scores, variant.loss)
    possible = p > 0
    right = possible.gather(-1, data.labels.unsqueeze(-1))
    return {
        "right, %": 100 * (p.argmax(-1) == data.labels).float().mean().item(),
        "pixels a query looks at": (weights > 0).sum(-1).float().mean().item(),
        "classes that remain possible": possible.sum(-1).float().mean().item(),
        "the right one is among them, %": 100 * right.float().mean().item(),
    }


def table(figures: Mapping[str, Sequence[dict[str, float]]]) -> str:
    """The means over the seeds."""
    names = list(next(iter(figures.values()))[0])
    width = max(map(len, names))
    lines = [" " * width + "".join(f"{variant:>20}" for variant in figures)]
    for name in names:
        means = [sum(run[name] for run in runs) / len(runs) for runs in figures.values()]
        lines.append(f"{name:<{width}}" + "".join(f"{mean:20.1f}" for mean in means))
    return "\n".join(lines)


@torch.no_grad()
def draw(models: Mapping[str, Reader], data: Digits, path: Path) -> None:
    """Digits as they are, and below them the most that any query gives to a pixel; zero is white."""
    images = data.images[:SHOWN]
    looked = {name: model(images)[1].amax((1, 2)) for name, model in models.items()}
    lines = {"image": images} | looked
    figure = fenchel.plot.new_figure(1.1 * SHOWN + 1.2, 1.15 * len(lines))
    axes = figure.subplots(len(lines), SHOWN)
    for line, (name, shown) in zip(axes, lines.items(), strict=True):
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
        for ax, picture in zip(line, shown, strict=True):
            blank_zeros = picture.where(picture > 0, torch.nan).view(SIDE, SIDE).numpy()
            ax.imshow(blank_zeros, cmap="Greys" if name == "image" else "BuPu", vmin=-0.2, vmax=1)
            ax.set(xticks=[], yticks=[])
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Read digits with dense and with sparse attention."
    )
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each variant")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--picture", type=Path, help="where to draw what was looked at")
    options = parser.parse_args(arguments)
    learn, test = digits()
    figures, models = {}, {}
    for name, variant in VARIANTS.items():
        runs = [
            train(variant, learn, seed=seed, epochs=options.epochs) for seed in range(options.seeds)
        ]
        figures[name], models[name] = [measure(model, variant, test) for model in runs], runs[0]
    print(table(figures))
    if options.picture:
        draw(models, test, options.picture)
        print(f"drew {options.picture}")


if __name__ == "__main__":
    main()
