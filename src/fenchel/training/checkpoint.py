"""Loading of weights and checkpoints, with checks of everything that is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fenchel.errors import FenchelError
from fenchel.stored_json import shortened
from fenchel.training.files import load_tensors
from fenchel.training.progress import Progress
from fenchel.training.task import Task

PARTS = {"model", "optimizer", "precision", "means", "progress"}


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The last checkpoint of a run; missing or invalid parts are an error.

    Under "progress" is a `Progress`; all else is as it was given to `save_tensors`.
    """
    checkpoint = load_tensors(path)
    missing = PARTS - checkpoint.keys()
    if missing:
        raise FenchelError(f"{path} must have all parts, {', '.join(sorted(missing))} is missing")
    where = str(path)
    checkpoint["progress"] = Progress.from_state(checkpoint["progress"], where)
    for name in ("optimizer", "precision", "means"):
        if not isinstance(checkpoint[name], dict):
            got = shortened(checkpoint[name])
            raise FenchelError(f"{where}: {name} must be a dictionary, got {got}")
    for name, mean in checkpoint["means"].items():
        if not (isinstance(mean, Tensor) and mean.shape == (2,)):
            got = shortened(mean)
            raise FenchelError(f"{where}: means.{name} must be a sum and a count, got {got}")
    return checkpoint


def load_weights(task: Task, path: Path) -> nn.Module:
    """A model of the task with the weights stored at `path`, on the CPU.

    The sizes are compared with those of the settings before anything is allocated.
    """
    weights = _checked(load_tensors(path), path)
    _check_sizes(task, weights, path)
    with torch.device("meta"):
        _check_shapes(task.build_model(), weights, path)
    model = task.build_model()
    model.load_state_dict(weights)
    return model


def restore_weights(model: nn.Module, stored: Any, path: Path) -> None:
    """Load weights that were stored at `path` into a model."""
    model.load_state_dict(matching_weights(model, stored, path))


def matching_weights(model: nn.Module, stored: Any, path: Path) -> dict[str, Tensor]:
    """Weights that were stored at `path`; other names or shapes than the model's are an error."""
    weights = _checked(stored, path)
    _check_shapes(model, weights, path)
    return weights


def restore_optimizer(optimizer: torch.optim.Optimizer, stored: dict[str, Any]) -> None:
    """Load the stored state of an optimizer."""
    statement = "the checkpoint's optimizer must fit the model"
    try:
        optimizer.load_state_dict(stored)
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise FenchelError(f"{statement}, got: {error!r}") from error
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.ndim > 0 and value.shape != parameter.shape:
                raise FenchelError(f"{statement}, got {name} of shape {tuple(value.shape)}")


def _checked(stored: Any, path: Path) -> dict[str, Tensor]:
    """The weights, if they are ordinary tensors of finite numbers."""
    if not isinstance(stored, Mapping):
        raise FenchelError(f"weights in {path} must be a dictionary, got {shortened(stored)}")
    room = path.stat().st_size
    for name, value in stored.items():
        if not (
            isinstance(name, str)
            and isinstance(value, Tensor)
            and value.dtype.is_floating_point
            and value.layout == torch.strided
            and value.device.type == "cpu"
            and value.is_contiguous()
            and value.numel() * value.element_size() <= room
        ):
            statement = f"weights in {path} must be dense real tensors on the CPU"
            raise FenchelError(f"{statement}, got {_described(value)} for {shortened(name)}")
        if not value.isfinite().all():
            raise FenchelError(f"weights in {path} must be finite, got NaN or infinity in {name}")
    return dict(stored)


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return shortened(value)
    kind = f"{value.dtype}, {value.layout}, {value.device}"
    return f"a tensor ({kind}) of shape {tuple(value.shape)}"


def _check_sizes(task: Task, weights: dict[str, Tensor], path: Path) -> None:
    """Refuse sizes for which even finding the shapes would take long."""
    largest = max((size for each in weights.values() for size in each.shape), default=0)
    limit = max(largest, len(weights))
    for name, size in task.model_sizes.items():
        if size > limit:
            raise FenchelError(f"{name} must be at most {limit} to fit {path}, got {size}")


def _check_shapes(model: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Refuse weights that do not fit the model."""
    statement = f"weights in {path} must fit the configuration"
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            shapes = [of.get(name, "no such weight") for of in (expected, found)]
            got = f"{shortened(name)} must be {shapes[0]}, got {shapes[1]}"
            raise FenchelError(f"{statement}: {got}")
    first: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        shared = first.setdefault(id(parameter), name)
        if not torch.equal(weights[name], weights[shared]):
            got = f"{shared} and {name} are shared and must be equal"
            raise FenchelError(f"{statement}: {got}")
