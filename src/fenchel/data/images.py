"""Photographs read from files that may be missing, damaged or far too large."""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

from fenchel.errors import FenchelError
from fenchel.extras import require

MAX_PIXELS = 50_000_000  # 150 MB as RGB; below the limit at which Pillow itself warns


def check_image(path: Path) -> None:
    """Raise unless the file is an image that `read_image` reads."""
    read_image(path, 32)


def read_image(path: Path, side: int | None = None) -> Any:
    """The image of a file in RGB, upright, as a `PIL.Image`.

    Args:
        path: The file, in any format that Pillow reads.
        side: The image is stretched to a square of this size; its own size if None.

    Raises:
        FenchelError: If the file is missing or damaged, or has more than 50 million pixels: a file of a
            few kilobytes can ask for gigabytes of memory, so that the size is read before the pixels.
    """
    image_module = require("PIL.Image", extra="vision")
    image_ops = require("PIL.ImageOps", extra="vision")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", image_module.DecompressionBombWarning)
            with image_module.open(path) as image:
                _check_size(path, *image.size)
                if side is not None:
                    image.draft(
                        "RGB", (side, side)
                    )  # a large JPEG is decoded at a lower resolution
                upright = image_ops.exif_transpose(image).convert("RGB")
    except FenchelError:
        raise
    except (image_module.DecompressionBombError, image_module.DecompressionBombWarning) as error:
        raise _too_large(path, f"more: {error}") from error
    except Exception as error:  # Pillow raises almost anything if a file is damaged
        raise FenchelError(f"image must be readable, got {path}: {error}") from error
    if side is None:
        return upright
    return upright.resize((side, side), image_module.Resampling.BICUBIC)


def thumbnail(path: Path, width: int) -> tuple[bytes, tuple[int, int]]:
    """The image as a JPEG file of at most this width and its width and height, for a page."""
    image = read_image(path)
    image.thumbnail((width, width))
    written = BytesIO()
    image.save(written, "JPEG", quality=80)
    return written.getvalue(), image.size


def _check_size(path: Path, width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise _too_large(path, f"{width} × {height}")


def _too_large(path: Path, got: str) -> FenchelError:
    return FenchelError(f"image must have at most {MAX_PIXELS:,} pixels, got {path} with {got}")
