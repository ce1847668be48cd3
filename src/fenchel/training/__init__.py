"""Training of any task on Lightning: configurations, the folder of a run, and the engine itself.

Only `fit` needs Lightning, and imports it when it is called.
"""

from fenchel.training.config import TrainingConfig
from fenchel.training.fitting import RunResult, fit
from fenchel.training.recipe import Recipe
from fenchel.training.run import Run
from fenchel.training.splits import DataSource, Splits
from fenchel.training.task import Evaluation, Predictor, PublicSet, Task
from fenchel.training.validation import validate

__all__ = [
    "DataSource",
    "Evaluation",
    "Predictor",
    "PublicSet",
    "Recipe",
    "Run",
    "RunResult",
    "Splits",
    "Task",
    "TrainingConfig",
    "fit",
    "validate",
]
