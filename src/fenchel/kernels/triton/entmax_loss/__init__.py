"""The entmax loss and its derivatives along the last dimension of the scores."""

from fenchel.kernels.triton.entmax_loss.alpha_gradient import entmax_loss_alpha
from fenchel.kernels.triton.entmax_loss.backward import entmax_loss_backward
from fenchel.kernels.triton.entmax_loss.forward import entmax_loss
from fenchel.kernels.triton.entmax_loss.in_place import entmax_loss_in_place
from fenchel.kernels.triton.entmax_loss.saved_for_backward import (
    listed_numbers,
    support_numbers,
    support_sizes,
)

__all__ = [
    "entmax_loss",
    "entmax_loss_alpha",
    "entmax_loss_backward",
    "entmax_loss_in_place",
    "listed_numbers",
    "support_numbers",
    "support_sizes",
]
