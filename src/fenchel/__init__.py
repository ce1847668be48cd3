"""Sparse, structured and continuous attention for PyTorch: everything is ∇Ω*."""

from fenchel import compat, nn, plot
from fenchel.bibliography import citation
from fenchel.dispatch import explain, implementation
from fenchel.errors import FenchelError
from fenchel.losses.functional import entmax_loss, fenchel_young_loss, sparsemax_loss
from fenchel.losses.linear import linear_entmax_loss
from fenchel.maps.budget import budget
from fenchel.maps.entmax import entmax
from fenchel.maps.normmax import normmax
from fenchel.maps.softmax import softmax
from fenchel.maps.sparsemax import sparsemax
from fenchel.mechanisms.functional import attention, attention_weights
from fenchel.regularizers import Gini, Norm, Shannon, Tsallis

__all__ = [
    "FenchelError",
    "Gini",
    "Norm",
    "Shannon",
    "Tsallis",
    "attention",
    "attention_weights",
    "budget",
    "citation",
    "compat",
    "entmax",
    "entmax_loss",
    "explain",
    "fenchel_young_loss",
    "implementation",
    "linear_entmax_loss",
    "nn",
    "normmax",
    "plot",
    "softmax",
    "sparsemax",
    "sparsemax_loss",
]
__version__ = "0.1.0"
