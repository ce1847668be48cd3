"""Training on Lightning, the folder of a run, prediction and its figures.

Only `fit` needs Lightning, and loads it when it is called.
"""

from fenchel.training.config import TrainingConfig
from fenchel.training.decode import predict
from fenchel.training.fit import RunResult, fit
from fenchel.training.measure import measure
from fenchel.training.run import Run
from fenchel.training.score import Scores, score

__all__ = ["Run", "RunResult", "Scores", "TrainingConfig", "fit", "measure", "predict", "score"]
