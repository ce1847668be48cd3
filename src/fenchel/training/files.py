"""Atomic writing of files, and reading of files that may be damaged."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO
from zipfile import ZipFile

import torch

from fenchel.errors import FenchelError
from fenchel.stored_json import parse_json, shortened


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write to a temporary file beside `path`, then rename it.

    If the process is killed before the end, the old file is unchanged.
    """
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
    """Write plain values as indented JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, lambda file: file.write(text.encode()))


def load_json(path: Path) -> Any:
    """Read a JSON file; the error of a missing or damaged file names it."""
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
    """Read tensors and plain values to the CPU.

    A file that would run code when it is loaded is refused. So is a compressed one, which `save_tensors`
    never writes: it could expand to any amount of memory.
    """
    try:
        with ZipFile(path) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > path.stat().st_size:
            raise ValueError("compressed data")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's advice on files that it did not write
            value = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as missing:
        raise FenchelError(f"{path} is missing") from missing
    except Exception as error:  # torch and zipfile raise almost anything if the file is damaged
        got = _reason(error)
        raise FenchelError(f"{path} must be a whole file of tensors, got: {got}") from error
    if not isinstance(value, dict):
        raise FenchelError(f"{path} must hold a dictionary, got {shortened(value)}")
    return value


def _reason(error: Exception) -> str:
    """Why a file is refused. The message of torch is replaced: it advises to load the file anyway."""
    if isinstance(error, UnpicklingError):
        asks = "global" in str(error).lower()
        return "a request to run code, which is refused" if asks else "damaged contents"
    return str(error).partition("\n")[0] or type(error).__name__
