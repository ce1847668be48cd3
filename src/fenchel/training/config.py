"""How a model is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fenchel.checks import check_known
from fenchel.errors import rule

SCHEDULES = ("halve", "cosine")
MONITORS = ("accuracy", "exact", "loss")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class TrainingConfig:
    """The defaults are the paper's: Adam at 0.001, halved whenever the validation loss has risen.

    Args:
        epochs: passes over the training examples, at most.
        batch_size: examples a batch and process.
        batch_tokens: symbols a batch at most, padding included.
        learning_rate: of Adam.
        schedule: "halve", or "cosine": from `learning_rate` down to 0 over all epochs.
        warmup_steps: over which the rate rises from 0.
        clip: the largest norm of a gradient (of the loss a token); None leaves them as they are.
        monitor: which validation figure chooses the best model: "accuracy" of tokens, "exact"
            (whole sequences that greedy search gets right), or "loss".
        validate_every: epochs between validations; the last epoch is always validated.
        patience: validations without a better one after which training stops; None never stops.
        checkpoint_every: steps after which a checkpoint may be written; None is once an epoch.
        checkpoint_seconds: seconds between checkpoints at least, where writing them takes long. The
            last one is always written.
        max_seconds: training stops at the first checkpoint after so much time; the same call goes on
            for as long again.
        log_every: steps between looks at the training loss. A look waits for the device.
        seed: of the parameters, the order of the batches and the dropout of every step.
        precision: "32-true", "bf16-mixed" or "16-mixed".
        accelerator, devices, nodes, strategy: as Lightning has them; `strategy` is "auto" or of the
            "ddp" kind. Every process has batches of its own.
        cuda_graphs: record the steps of every shape of batch once and replay them: several times
            faster on a GPU, for one process in full precision. None does so wherever it can.
        compile: run the decoder through `torch.compile`, once for every length of the targets.

    >>> TrainingConfig(epochs=3).learning_rate
    0.001
    """

    epochs: int = 30
    batch_size: int = 64
    batch_tokens: int | None = None
    learning_rate: float = 1e-3
    schedule: str = "halve"
    warmup_steps: int = 0
    clip: float | None = 5.0
    monitor: str = "accuracy"
    validate_every: int = 1
    patience: int | None = None
    checkpoint_every: int | None = None
    checkpoint_seconds: float = 0.0
    max_seconds: float | None = None
    log_every: int = 50
    seed: int = 0
    precision: str = "32-true"
    accelerator: str = "auto"
    devices: int | str = "auto"
    nodes: int = 1
    strategy: str = "auto"
    cuda_graphs: bool | None = None
    compile: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "validate_every", "log_every", "nodes"):
            check_count(name, getattr(self, name), least=1)
        for name in ("batch_tokens", "patience", "checkpoint_every"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), least=1)
        for name in ("warmup_steps", "seed"):
            check_count(name, getattr(self, name), least=0)
        if self.seed > LARGEST_SEED:
            raise rule(
                "seed is a seed of PyTorch", expected=f"at most {LARGEST_SEED}", got=self.seed
            )
        for name in ("learning_rate", "clip", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise rule(f"{name} must be positive", expected="a number above 0", got=value)
        if not self.checkpoint_seconds >= 0:
            got = self.checkpoint_seconds
            raise rule("checkpoint_seconds is a time", expected="a number from 0 on", got=got)
        check_known("schedule", self.schedule, SCHEDULES)
        check_known("monitor", self.monitor, MONITORS)
        check_known("precision", self.precision, PRECISIONS)
        if self.cuda_graphs and not self.steps_are_plain:
            expected = "full precision, no compile, no batch_tokens"
            raise rule(
                "cuda_graphs repeat plain steps of one size", expected=expected, got="others"
            )
        if self.strategy != "auto" and not self.strategy.startswith("ddp"):
            expected, got = '"auto" or one of the "ddp" kind', repr(self.strategy)
            raise rule("every process holds the whole model", expected=expected, got=got)

    @property
    def steps_are_plain(self) -> bool:
        """Whether a step can be recorded: full precision, not compiled, batches of one size."""
        return self.precision == "32-true" and not self.compile and self.batch_tokens is None


def check_count(name: str, value: object, *, least: int) -> None:
    """Refuse what is not an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise rule(f"{name} is a number", expected=f"an integer of at least {least}", got=value)
