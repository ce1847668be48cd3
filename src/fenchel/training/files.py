"""Files that are whole or not there at all."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO

import torch

from fenchel.errors import rule

# What torch.load raises for a file that it did not write, or of which a part is missing.
UNREADABLE = (
    RuntimeError,
    UnpicklingError,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    struct.error,
)


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
        return json.loads(path.read_text("utf8"))
    except FileNotFoundError as missing:
        raise rule("a run has all its files", expected=f"a file {path}", got="none") from missing
    except (ValueError, OSError) as error:
        raise rule("a run's files can be read", expected=f"JSON in {path}", got=error) from error


def save_tensors(path: Path, value: dict[str, Any]) -> None:
    """Write tensors and plain values, as `load_tensors` reads them."""
    write_atomically(path, lambda file: torch.save(value, file))


def load_tensors(path: Path) -> dict[str, Any]:
    """Tensors and plain values, on the CPU; a file that asks for code to run is refused."""
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as missing:
        raise rule("a run has all its files", expected=f"a file {path}", got="none") from missing
    except UNREADABLE as error:
        got = str(error).partition("\n")[0] or type(error).__name__
        raise rule("a checkpoint is whole", expected=f"tensors in {path}", got=got) from error
    if not isinstance(value, dict):
        got = type(value).__name__
        raise rule("a checkpoint is whole", expected=f"a dictionary in {path}", got=got)
    return value
