"""Maps, losses and attention as modules."""

from fenchel.mechanisms.multihead import MultiheadAttention
from fenchel.mechanisms.recurrent import AdditiveAttention, GeneralAttention
from fenchel.nn.continuous import ContinuousAttention1d, ContinuousAttention2d
from fenchel.nn.losses import EntmaxLoss, FenchelYoungLoss, LinearEntmaxLoss, SparsemaxLoss
from fenchel.nn.maps import Budget, Entmax, Logistic, Normmax, Softmax, Sparsemax
from fenchel.nn.structured import Fusedmax, Fusedmax2d, Oscarmax, Pnormmax

__all__ = [
    "AdditiveAttention",
    "Budget",
    "ContinuousAttention1d",
    "ContinuousAttention2d",
    "Entmax",
    "EntmaxLoss",
    "FenchelYoungLoss",
    "Fusedmax",
    "Fusedmax2d",
    "GeneralAttention",
    "LinearEntmaxLoss",
    "Logistic",
    "MultiheadAttention",
    "Normmax",
    "Oscarmax",
    "Pnormmax",
    "Softmax",
    "Sparsemax",
    "SparsemaxLoss",
]
