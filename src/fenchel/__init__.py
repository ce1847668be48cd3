"""Sparse, structured and continuous attention for PyTorch: everything is ∇Ω*."""

from importlib import import_module
from typing import Any

from fenchel import compat, continuous, nn, plot
from fenchel.bibliography import citation
from fenchel.custom import Custom
from fenchel.errors import FenchelError
from fenchel.losses.functional import entmax_loss, fenchel_young_loss, sparsemax_loss
from fenchel.losses.linear import linear_entmax_loss
from fenchel.maps.budget import budget
from fenchel.maps.entmax import entmax
from fenchel.maps.fusedmax import fused_groups, fusedmax
from fenchel.maps.fusedmax2d import fusedmax2d
from fenchel.maps.normmax import normmax
from fenchel.maps.oscarmax import oscarmax, oscarmax_composition
from fenchel.maps.pnormmax import pnormmax
from fenchel.maps.softmax import softmax
from fenchel.maps.sparsemax import sparsemax
from fenchel.mechanisms.functional import attention, attention_weights
from fenchel.operators.dispatch import explain, implementation
from fenchel.regularizers import Fused, Gini, Norm, Oscar, PNorm, Shannon, Tsallis

__all__ = [
    "Custom",
    "FenchelError",
    "Fused",
    "Gini",
    "Norm",
    "Oscar",
    "PNorm",
    "Shannon",
    "Tsallis",
    "attention",
    "attention_weights",
    "budget",
    "citation",
    "compat",
    "continuous",
    "entmax",
    "entmax_loss",
    "explain",
    "fenchel_young_loss",
    "fused_groups",
    "fusedmax",
    "fusedmax2d",
    "implementation",
    "linear_entmax_loss",
    "nn",
    "normmax",
    "oscarmax",
    "oscarmax_composition",
    "plot",
    "pnormmax",
    "softmax",
    "sparsemax",
    "sparsemax_loss",
]
__version__ = "0.1.0"

_LAZY = (
    "analysis",
    "data",
    "models",
    "recipes",
    "report",
    "search",
    "sklearn",
    "tasks",
    "training",
)


def __getattr__(name: str) -> Any:
    """Import the other subpackages when they are first used."""
    if name in _LAZY:
        return import_module(f"fenchel.{name}")
    raise AttributeError(f"module 'fenchel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY, "__version__"])
