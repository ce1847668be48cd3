"""The folder of a run: everything that is needed to go on with it, or to use its model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import fenchel
from fenchel.data.codec import Codec
from fenchel.data.encoded import Encoded
from fenchel.errors import rule
from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig
from fenchel.training.config import TrainingConfig
from fenchel.training.files import load_json, load_tensors, save_json

FORMAT = 1


@dataclass(frozen=True)
class Run:
    """A trained model, or one in training, with all that belongs to it.

    The folder holds `config.json` (configurations, recipe, versions), `codec.json`, `best.pt` (the
    weights of the best validation), `checkpoints/last.ckpt` (where training goes on), `log.csv` (one
    row a validation), `metrics.json` (the best row) and, where TensorBoard is installed, its logs.

    Args:
        path: the folder.
        model_config, training_config, codec: what the run was made from.
        recipe: what else the caller wants to find again, as JSON can hold it.
        data: a digest of the training examples.
    """

    path: Path
    model_config: Seq2SeqConfig
    training_config: TrainingConfig
    codec: Codec
    recipe: Mapping[str, Any] | None = None
    data: str = ""

    @property
    def checkpoint_path(self) -> Path:
        return self.path / "checkpoints" / "last.ckpt"

    @property
    def weights_path(self) -> Path:
        return self.path / "best.pt"

    @property
    def log_path(self) -> Path:
        return self.path / "log.csv"

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.json"

    @cached_property
    def model(self) -> Seq2Seq:
        """The model of the best validation so far, on the CPU, for prediction."""
        if not self.weights_path.exists():
            expected, got = "at least one validation", f"no {self.weights_path.name} in {self.path}"
            raise rule("a run has a model once it was validated", expected=expected, got=got)
        model = Seq2Seq(self.model_config)
        restore_weights(model, load_tensors(self.weights_path), self.weights_path)
        return model.eval()

    @property
    def metrics(self) -> dict[str, Any]:
        """The figures of the best validation, and what others have added."""
        return load_json(self.metrics_path) if self.metrics_path.exists() else {}

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """The run in a folder; its model is read when first asked for."""
        path = Path(path)
        if not (path / "config.json").is_file():
            raise rule("a run is a folder", expected="a config.json", got=f"none in {path}")
        state = load_json(path / "config.json")
        known: Mapping[str, Any] = state if isinstance(state, dict) else {}
        if known.get("format") != FORMAT:
            expected = f"format {FORMAT}, of fenchel {fenchel.__version__}"
            made = known.get("version", "unknown")
            got = f"format {known.get('format')!r}, of fenchel {made}"
            raise rule(f"the run {path} is of this version", expected=expected, got=got)
        codec = Codec.from_state(load_json(path / "codec.json"))
        try:
            model, training = Seq2SeqConfig(**state["model"]), TrainingConfig(**state["training"])
            return cls(path, model, training, codec, state["recipe"], state["data"])
        except (KeyError, TypeError) as error:
            expected = f"the fields of fenchel {fenchel.__version__}"
            raise rule(
                f"the run {path} is of this version", expected=expected, got=error
            ) from error

    def save(self) -> None:
        """Write the configuration and the codec."""
        save_json(self.path / "codec.json", self.codec.state())
        save_json(self.path / "config.json", self._state())

    def check_continues(self, before: Run) -> None:
        """Raise unless this run may go on where `before`, found in the same folder, has stopped."""
        ours, theirs = self._state(), before._state()
        if self.data != before.data or self.codec.state() != before.codec.state():
            expected = "the same training data, read in the same way (or another folder)"
            raise rule(f"{self.path} holds another run", expected=expected, got="other data")
        for part in ("model", "training"):
            for name, value in ours[part].items():
                if value != theirs[part].get(name) and name not in self._may_change:
                    expected = f"{name}={theirs[part].get(name)!r} (or another folder)"
                    got = f"{name}={value!r}"
                    raise rule(f"{self.path} holds another run", expected=expected, got=got)

    @property
    def _may_change(self) -> set[str]:
        """What has no influence on a step; with the cosine the number of epochs has."""
        free = {"patience", "max_seconds", "checkpoint_seconds", "accelerator"}
        return free | ({"epochs"} if self.training_config.schedule == "halve" else set())

    def _state(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": fenchel.__version__,
            "model": asdict(self.model_config),
            "training": asdict(self.training_config),
            "recipe": None if self.recipe is None else dict(self.recipe),
            "data": self.data,
        }


def restore_weights(model: Seq2Seq, weights: Mapping[str, Any], path: Path) -> None:
    """Put stored weights into a model."""
    try:
        model.load_state_dict(dict(weights))
    except (RuntimeError, TypeError) as error:
        expected = f"the weights of {path} to fit the configuration"
        got = " ".join(str(error).split())[:200]
        raise rule("a run's files belong together", expected=expected, got=got) from error


def digest(data: Encoded) -> str:
    """The same for the same examples in the same order."""
    found = hashlib.blake2b(digest_size=16)
    for rows in (data.source, data.target):
        for tensor in (rows.values, rows.lengths):
            found.update(tensor.cpu().numpy().tobytes())
    return found.hexdigest()
