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
from fenchel.errors import FenchelError, rule
from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig
from fenchel.schema import from_json, shortened
from fenchel.training.config import TrainingConfig
from fenchel.training.files import load_json, save_json
from fenchel.training.weights import load_model

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
        return load_model(self.model_config, self.weights_path).eval()

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """The figures of the best validation, and what others have added."""
        if not self.metrics_path.exists():
            return {}
        stored = load_json(self.metrics_path)
        return from_json(dict[str, dict[str, Any]], stored, str(self.metrics_path))

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """The run in a folder; its model is read when first asked for."""
        path = Path(path)
        file = path / "config.json"
        if not file.is_file():
            raise FenchelError(f"no run found in {path}: config.json is missing")
        stored = _stored(load_json(file), str(file))
        codec_file = path / "codec.json"
        codec = Codec.from_state(load_json(codec_file), str(codec_file))
        vocabularies = {"source": codec.source_vocabulary, "target": codec.target_vocabulary}
        for side, vocabulary in vocabularies.items():
            wanted, got = len(vocabulary), getattr(stored.model, f"{side}_size")
            if got != wanted:
                size = f"{file}: model.{side}_size"
                raise FenchelError(f"{size} must be {wanted} as in codec.json, got {got}")
        return cls(path, stored.model, stored.training, codec, stored.recipe, stored.data)

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


@dataclass(frozen=True)
class _StoredRun:
    """What is in `config.json`."""

    format: int
    version: str
    model: Seq2SeqConfig
    training: TrainingConfig
    recipe: dict[str, Any] | None
    data: str


def _stored(state: Any, where: str) -> _StoredRun:
    found = state.get("format") if isinstance(state, dict) else state
    made = state.get("version", "unknown") if isinstance(state, dict) else "unknown"
    if made != fenchel.__version__:
        where = f"{where} (written by fenchel {shortened(made)}, read by {fenchel.__version__})"
    if found != FORMAT:
        raise FenchelError(f"{where} must have format {FORMAT}, got {shortened(found)}")
    return from_json(_StoredRun, state, where)


def digest(data: Encoded) -> str:
    """The same for the same examples in the same order."""
    found = hashlib.blake2b(digest_size=16)
    for rows in (data.source, data.target):
        for tensor in (rows.values, rows.lengths):
            found.update(tensor.cpu().numpy().tobytes())
    return found.hexdigest()
