"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass

from fenchel.checks import BELOW_ZERO, check_count, check_known, check_number
from fenchel.errors import FenchelError

SCHEDULES = ("halve", "cosine", "inverse-sqrt")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of training; the defaults are those of Peters, Niculae & Martins (2019).

    >>> TrainingConfig(epochs=3).learning_rate
    0.001
    """

    epochs: int = 30
    """Maximum number of passes over the training examples."""
    batch_size: int = 64
    """Number of examples per batch and process."""
    batch_tokens: int | None = None
    """Maximum number of symbols per batch, padding included; None sets no limit."""
    accumulate: int = 1
    """Number of batches per step of the optimizer, whose gradient is that of the mean loss of all their
    symbols: as many symbols as in a larger batch, in the memory of a smaller one."""
    learning_rate: float = 1e-3
    """Highest learning rate of Adam."""
    beta1: float = 0.9
    """Decay of Adam's mean of the gradient."""
    beta2: float = 0.999
    """Decay of Adam's mean of the squared gradient; 0.98 is usual for Transformers."""
    schedule: str = "halve"
    """Learning-rate schedule: "halve" whenever the validation loss has risen, "cosine" down to 0 over all
    epochs, or "inverse-sqrt", which falls after warm-up with the square root of the number of steps."""
    warmup_steps: int = 0
    """Number of steps over which the learning rate rises linearly from 0."""
    clip: float | None = 5.0
    """Maximum norm of the gradient of the loss per token; None disables clipping."""
    monitor: str = "accuracy"
    """Validation metric that selects the best model: "loss", or a metric of the task."""
    validate_every: int = 1
    """Number of epochs between validations; the last epoch is always validated."""
    average: int = 1
    """Number of the last validations whose weights are averaged; the average is what is validated, and
    kept if it is the best."""
    patience: int | None = None
    """Number of validations without improvement after which training stops; None never stops early."""
    checkpoint_every: int | None = None
    """Maximum number of steps between checkpoints; None writes one per epoch."""
    checkpoint_seconds: float = 0.0
    """Minimum time between checkpoints in seconds; the last checkpoint is always written."""
    max_seconds: float | None = None
    """Training stops at the first checkpoint after this many seconds; starting it again resumes it for as
    long."""
    log_every: int = 50
    """Number of batches between readings of the training loss; each reading waits for the device."""
    held_out: float = 0.1
    """Share of the training examples used as the development set if none is given."""
    seed: int = 0
    """Random seed of the initial weights, the order of batches, dropout, and the held-out examples."""
    precision: str = "32-true"
    """Floating-point precision: "32-true", "bf16-mixed" or "16-mixed"."""
    accelerator: str = "auto"
    """Type of device, as in Lightning: "auto", "cpu", "gpu"."""
    devices: int | str = "auto"
    """Number of devices, or of processes on the CPU, per machine, as in Lightning."""
    threads: int | None = None
    """Number of CPU threads; None takes PyTorch's default. Small models, and trainings side by side, are
    fastest with one thread each."""
    nodes: int = 1
    """Number of machines."""
    strategy: str = "auto"
    """Distribution over processes, as in Lightning: "auto", or a strategy whose name starts with "ddp";
    each process has its own batches."""
    cuda_graphs: bool | None = None
    """Whether training steps are recorded as CUDA graphs and replayed, which is faster on a single GPU in
    full precision; None does so wherever possible."""

    def __post_init__(self) -> None:
        for name in (
            "epochs", "batch_size", "accumulate", "validate_every", "average", "log_every", "nodes",
        ):  # fmt: skip
            check_count(getattr(self, name), name)
        for name in ("batch_tokens", "patience", "checkpoint_every", "threads"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name)
        for name in ("warmup_steps", "seed"):
            check_count(getattr(self, name), name, least=0)
        for name in ("held_out", "beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                got = getattr(self, name)
                raise FenchelError(f"{name} must be at least 0 and below 1, got {got}")
        if self.seed > LARGEST_SEED:
            raise FenchelError(f"seed must be at most {LARGEST_SEED}, got {self.seed}")
        for name in ("learning_rate", "clip", "max_seconds"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name=name, above=0)
        check_number(self.checkpoint_seconds, name="checkpoint_seconds", above=BELOW_ZERO)
        check_known("schedule", self.schedule, SCHEDULES)
        check_known("precision", self.precision, PRECISIONS)
        if self.cuda_graphs and not self.steps_are_plain:
            raise FenchelError(
                "cuda_graphs requires full precision, and cannot be combined with batch_tokens "
                "or accumulate"
            )
        if self.strategy != "auto" and not self.strategy.startswith("ddp"):
            raise FenchelError(
                f"strategy must be 'auto' or start with 'ddp', got {self.strategy!r}"
            )

    @property
    def steps_are_plain(self) -> bool:
        """Whether a step can be recorded: full precision, one batch, batches of one size."""
        full = self.precision == "32-true" and self.accumulate == 1
        return full and self.batch_tokens is None
