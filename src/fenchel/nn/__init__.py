"""Every map, loss and attention of the library as an `nn.Module`."""

from fenchel.mechanisms.multihead import MultiheadAttention
from fenchel.mechanisms.recurrent import AdditiveAttention, GeneralAttention
from fenchel.nn.losses import EntmaxLoss, FenchelYoungLoss, LinearEntmaxLoss, SparsemaxLoss
from fenchel.nn.maps import Budget, Entmax, Normmax, Softmax, Sparsemax

__all__ = [
    "AdditiveAttention",
    "Budget",
    "Entmax",
    "EntmaxLoss",
    "FenchelYoungLoss",
    "GeneralAttention",
    "LinearEntmaxLoss",
    "MultiheadAttention",
    "Normmax",
    "Softmax",
    "Sparsemax",
    "SparsemaxLoss",
]
