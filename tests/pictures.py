"""Image files for tests, among them one that is far too large."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from PIL import Image


def drawing(path: Path, colour: tuple[int, int, int] = (200, 30, 30), size=(40, 30)) -> Path:
    """A file with an image of one colour."""
    Image.new("RGB", size, colour).save(path)
    return path


def bomb(path: Path, side: int = 60_000) -> Path:
    """A PNG file of some bytes that says that it has side² pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = {b"IHDR": header, b"IDAT": zlib.compress(b"\0" * 1000), b"IEND": b""}
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts.items()
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    return path
