"""The gradients of an output layer whose scores have mostly zero gradients."""

from fenchel.kernels.triton.linear_entmax_loss.weight_gradient import (
    SparseWeightGradient,
    scale,
    sparse_weight_gradient,
)

__all__ = ["SparseWeightGradient", "scale", "sparse_weight_gradient"]
