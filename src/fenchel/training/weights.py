"""Stored weights into a model: their shapes are checked before the model is built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fenchel.errors import FenchelError
from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig
from fenchel.schema import shortened
from fenchel.training.files import load_tensors


def load_model(config: Seq2SeqConfig, path: Path) -> Seq2Seq:
    """The model of a configuration with the weights stored at `path`, on the CPU.

    Nothing is allocated for a configuration that asks for other sizes than the weights have.
    """
    weights = _checked(load_tensors(path), path)
    _check_sizes(config, weights, path)
    with torch.device("meta"):
        _check_shapes(Seq2Seq(config), weights, path)
    model = Seq2Seq(config)
    model.load_state_dict(weights)
    return model


def restore_weights(model: Seq2Seq, stored: Any, path: Path) -> None:
    """Put weights that were stored at `path` into a model."""
    weights = _checked(stored, path)
    _check_shapes(model, weights, path)
    model.load_state_dict(weights)


def restore_optimizer(optimizer: torch.optim.Optimizer, stored: dict[str, Any]) -> None:
    """Put the stored state of an optimizer into it."""
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


def _check_sizes(config: Seq2SeqConfig, weights: dict[str, Tensor], path: Path) -> None:
    """Refuse sizes for which even the shapes would take long to find."""
    largest = max((size for each in weights.values() for size in each.shape), default=0)
    sizes = ["source_size", "target_size", "embedding_size", "hidden_size"]
    if config.attention_map == "combined":
        sizes.append("attention_bases")
    limits = {**dict.fromkeys(sizes, largest), "layers": len(weights)}
    for name, limit in limits.items():
        if getattr(config, name) > limit:
            got = getattr(config, name)
            raise FenchelError(f"{name} must be at most {limit} to fit {path}, got {got}")


def _check_shapes(model: Seq2Seq, weights: dict[str, Tensor], path: Path) -> None:
    """Refuse weights that are not those of the model."""
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            shapes = [of.get(name, "no such weight") for of in (expected, found)]
            statement = f"weights in {path} must fit the configuration: {shortened(name)}"
            raise FenchelError(f"{statement} must be {shapes[0]}, got {shapes[1]}")
    shared = [weights[name] for name in ("decoder.embedding.weight", "output.weight")]
    if model.config.share_embeddings and not torch.equal(*shared):
        statement = f"weights in {path} must fit the configuration"
        raise FenchelError(f"{statement}: shared embeddings must be equal, got two different ones")
