"""Files that are whole or not there at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

import torch

from fenchel.errors import FenchelError
from fenchel.schema import parse_json, shortened


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write beside `path`, then rename: whoever is killed meanwhile leaves the old file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not name the file
        raise
    finally:
        beside.unlink(missing_ok=True)


def save_json(path: Path, value: Any) -> None:
    """Write plain values as text that a person can read."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, lambda file: file.write(text.encode()))


def load_json(path: Path) -> Any:
    """What `save_json` wrote; an error that names the file if it is not there or not whole."""
    try:
        return parse_json(path.read_text("utf8"))
    except FileNotFoundError as missing:
        raise FenchelError(f"{path} is missing") from missing
    except (ValueError, OSError) as error:
        raise FenchelError(f"{path} must be JSON, got: {error}") from error


def save_tensors(path: Path, value: dict[str, Any]) -> None:
    """Write tensors and plain values, as `load_tensors` reads them."""
    write_atomically(path, lambda file: torch.save(value, file))


def load_tensors(path: Path) -> dict[str, Any]:
    """Tensors and plain values, on the CPU.

    A file that asks for code to run is refused, and so is a compressed one, which `save_tensors` never
    writes: it may need any amount of memory.
    """
    try:
        with ZipFile(path) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > path.stat().st_size:
            raise ValueError("compressed data")
        value = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as missing:
        raise FenchelError(f"{path} is missing") from missing
    except Exception as error:  # torch and zipfile raise almost anything if the file is damaged
        got = str(error).partition("\n")[0] or type(error).__name__
        raise FenchelError(f"{path} must be a whole file of tensors, got: {got}") from error
    if not isinstance(value, dict):
        raise FenchelError(f"{path} must hold a dictionary, got {shortened(value)}")
    return value
