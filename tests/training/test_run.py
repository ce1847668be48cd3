"""The folder of a run: broken files are refused, and nothing in it is ever executed."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest
import torch

from fenchel import FenchelError
from fenchel.tasks import load_run
from fenchel.training.files import load_tensors, save_tensors, write_atomically
from tests.training.small import fit_small


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    fit_small(folder, epochs=1)
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy that may be broken."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _edit(path: Path, change: Callable[[dict], object]) -> None:
    state = json.loads(path.read_text())
    change(state)
    path.write_text(json.dumps(state))


def test_a_whole_run_is_loaded(run: Path):
    loaded = load_run(run)
    assert loaded.task.model.source_size == len(loaded.processor.source_vocabulary)
    assert not loaded.model.training


def test_no_run_at_all(tmp_path: Path):
    with pytest.raises(FenchelError, match=r"^no run found in .*: config\.json is missing$"):
        load_run(tmp_path)


def test_a_run_of_another_version(run: Path):
    _edit(run / "config.json", lambda state: state.update(format=99, version="7.0"))
    with pytest.raises(FenchelError, match=r"\(written by fenchel '7\.0'.* format 2, got 99$"):
        load_run(run)


@pytest.mark.parametrize(
    ("text", "got"), [("[]", r"\[\]"), ("3", "3"), ("null", "None"), ("{}", "None")]
)
def test_a_description_of_something_else(run: Path, text: str, got: str):
    (run / "config.json").write_text(text)
    with pytest.raises(FenchelError, match=rf"config\.json .*must have format 2, got {got}$"):
        load_run(run)


def test_a_run_with_an_unknown_setting(run: Path):
    _edit(
        run / "config.json", lambda state: state["recipe"]["task"]["model"].update(flavour="sour")
    )
    message = r"config\.json: recipe\.task\.model must not have the key 'flavour'$"
    with pytest.raises(FenchelError, match=message):
        load_run(run)


@pytest.mark.parametrize("name", ["config.json", "processor.json"])
def test_a_description_cut_short(run: Path, name: str):
    _cut(run / name)
    with pytest.raises(FenchelError, match=rf"{name} must be JSON, got: "):
        load_run(run)


def test_a_processor_that_is_missing(run: Path):
    (run / "processor.json").unlink()
    with pytest.raises(FenchelError, match=r"processor\.json is missing$"):
        load_run(run)


def test_weights_cut_short(run: Path):
    _cut(run / "best.pt")
    with pytest.raises(FenchelError, match=r"best\.pt must be a whole file of tensors, got: "):
        _ = load_run(run).model


def test_weights_of_another_model(run: Path):
    _edit(
        run / "config.json", lambda state: state["recipe"]["task"]["model"].update(hidden_size=16)
    )
    message = r"best\.pt must fit the configuration: .* must be \(.*\), got \(.*\)$"
    with pytest.raises(FenchelError, match=message):
        _ = load_run(run).model


@pytest.mark.parametrize("content", [b"", b"junk", b"a0", b"1", b"<html></html>"])
def test_weights_that_are_none(tmp_path: Path, content: bytes):
    (tmp_path / "best.pt").write_bytes(content)
    with pytest.raises(FenchelError, match=r"best\.pt must be a whole file of tensors, got: "):
        load_tensors(tmp_path / "best.pt")


def test_a_run_before_its_first_validation(run: Path):
    (run / "best.pt").unlink()
    with pytest.raises(
        FenchelError, match=r"has no model yet: best\.pt is written by a validation"
    ):
        _ = load_run(run).model


def test_a_checkpoint_cut_short(run: Path):
    _cut(run / "checkpoints" / "last.ckpt")
    with pytest.raises(FenchelError, match=r"last\.ckpt must be a whole file of tensors"):
        fit_small(run, epochs=2)


def test_a_checkpoint_without_all_its_parts(run: Path):
    save_tensors(run / "checkpoints" / "last.ckpt", {"model": {}})
    with pytest.raises(
        FenchelError, match=r"last\.ckpt must have all parts, means, optimizer, .* is missing"
    ):
        fit_small(run, epochs=2)


def _first_rows(checkpoint: dict) -> None:
    for state in checkpoint["optimizer"]["state"].values():
        state["exp_avg"] = state["exp_avg"][:1].clone()


def _longer_mean(checkpoint: dict) -> None:
    checkpoint["means"]["loss"] = torch.zeros(3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts["optimizer"].clear(), r"optimizer must fit the model, got: .*param"),
        (lambda parts: parts["optimizer"].update(state=3), "optimizer must fit the model, got: "),
        (_first_rows, r"optimizer must fit the model, got exp_avg of shape \(1, 32\)"),
        (lambda parts: parts.update(means=3), "means must be a dictionary, got 3"),
        (_longer_mean, "means.loss must be a sum and a count"),
        (lambda parts: parts["model"].clear(), "must fit the configuration"),
        (lambda parts: parts.update(model=[]), r"weights in .*last\.ckpt must be a dictionary"),
    ],
)
def test_a_checkpoint_of_another_model(run: Path, change: Callable, message: str):
    parts = load_tensors(run / "checkpoints" / "last.ckpt")
    change(parts)
    save_tensors(run / "checkpoints" / "last.ckpt", parts)
    with pytest.raises(FenchelError, match=message):
        fit_small(run, epochs=2)


class _Harm:
    """What executes code when it is unpickled carelessly."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    ("save", "reason"),
    [
        (torch.save, "a request to run code, which is refused"),
        (partial(torch.save, pickle_protocol=4), "damaged contents"),
        (
            lambda value, path: path.write_bytes(pickle.dumps(value, protocol=2)),
            "File is not a zip file",
        ),
    ],
)
def test_a_file_that_would_execute_code_is_refused(tmp_path: Path, save: Callable, reason: str):
    save({"weights": _Harm(tmp_path / "harmed")}, tmp_path / "evil.pt")
    with pytest.raises(FenchelError, match=f"must be a whole file of tensors, got: {reason}$"):
        load_tensors(tmp_path / "evil.pt")
    assert not (tmp_path / "harmed").exists()


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(file) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_reported_with_the_file_that_did_not_fit(tmp_path: Path):
    def fail(_: BinaryIO) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"No space left on device: .*best\.pt") as failed:
        write_atomically(tmp_path / "best.pt", fail)
    assert failed.value.filename == str(tmp_path / "best.pt")
    assert list(tmp_path.iterdir()) == []
