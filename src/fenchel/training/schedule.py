"""Learning-rate schedules; `TrainingConfig.schedule` names the one to use.

The schedule "halve" depends on validation losses: `Progress.add_validation` halves the factor `rate`.
A schedule that depends on the number of epochs, as "cosine" does, must keep it when a run resumes: see
`_free_settings` in `training/run.py`.
"""

from __future__ import annotations

import math

from fenchel.training.config import TrainingConfig
from fenchel.training.progress import Progress


def learning_rate(config: TrainingConfig, progress: Progress, step: int, epoch: float) -> float:
    """The learning rate of a step; `epoch` is the number of finished passes, with a fraction.

    >>> config = TrainingConfig(schedule="cosine", epochs=10, learning_rate=1.0)
    >>> [round(learning_rate(config, Progress(), 100, epoch), 3) for epoch in (0, 5, 9, 10)]
    [1.0, 0.5, 0.024, 0.0]

    With the schedule "inverse-sqrt", step number n after n₀ steps of warm-up has the rate √(n₀/n) of the
    highest one:

    >>> config = TrainingConfig(schedule="inverse-sqrt", warmup_steps=4, learning_rate=1.0)
    >>> [learning_rate(config, Progress(), number - 1, 0) for number in (1, 2, 4, 16, 64)]
    [0.25, 0.5, 1.0, 0.5, 0.25]
    """
    rate = config.learning_rate * progress.rate
    if config.schedule == "cosine":
        rate *= 0.5 * (1 + math.cos(math.pi * min(epoch / config.epochs, 1.0)))
    if config.schedule == "inverse-sqrt":
        rate *= math.sqrt(min(max(config.warmup_steps, 1) / (step + 1), 1.0))
    if step < config.warmup_steps:
        rate *= (step + 1) / config.warmup_steps
    return rate
