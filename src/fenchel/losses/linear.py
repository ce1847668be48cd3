"""The entmax loss of an output layer, without the scores of all rows at once."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fenchel.autocast import autocast_dtype
from fenchel.checks import check_count, check_dense, check_device, check_parameter
from fenchel.errors import FenchelError
from fenchel.losses.reduction import (
    check_classes,
    check_options,
    check_target,
    mean_of,
    row_weights,
)
from fenchel.operators.linear_chunks import loss_dtype
from fenchel.operators.linear_entmax_loss import linear_losses


def linear_entmax_loss(
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    alpha: float | Tensor = 1.5,
    *,
    bias: Tensor | None = None,
    class_weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    chunk_rows: int | None = None,
) -> Tensor:
    r"""`entmax_loss(F.linear(hidden, weight, bias), target, alpha)`, in chunks of rows.

    With h a row of `hidden`, W the weight and b the bias, the loss of the row is

        L_α(Wh + b; q) = Ω_α(q) + Ω_α*(Wh + b) − ⟨q, Wh + b⟩,    ∂L/∂h = Wᵀ(p − q),  ∂L/∂W = (p − q) hᵀ,

    with p = entmax_α(Wh + b). The N × C scores never exist at once: the scores of a chunk are
    overwritten by p − q, which is multiplied into the gradients. For "mean" and "sum" this happens in
    the forward pass, with no more matrix products than in the plain layer; for "none" the backward
    pass computes the scores again. Besides the gradients, this takes memory for `chunk_rows` × C
    numbers.

    Under autocast, products are computed in its dtype and the loss in float32. Gradients are summed
    over the chunks in the dtype of the parameter, so the gradient of half-precision weights is rounded
    once per chunk (16 times by default), or twice in total where a GPU sums only the entries of p − q
    that are not zero: for class indices, many classes and a number α in (1, 2]. Higher derivatives,
    forward mode and `torch.func` use the plain layer, with all scores in memory.

    Args:
        hidden: (…, D), the inputs of the layer.
        weight: (C, D), the output matrix, one row per class.
        target: class indices (…), or probabilities (…, C).
        alpha: a number above 0, or a differentiable tensor that broadcasts to (…, 1).
        bias: (C), or None.
        class_weight: one weight per class, as `weight` in `entmax_loss`; a constant.
        ignore_index, reduction, label_smoothing: as in `entmax_loss`.
        chunk_rows: rows per chunk, by default 1/16 of all rows, and at least 256.

    >>> import torch, fenchel
    >>> hidden, weight = torch.eye(2), torch.tensor([[3.0, 0.2], [0.5, 0.1], [-1.0, 0.0]])
    >>> fenchel.linear_entmax_loss(hidden, weight, torch.tensor([0, 2]), reduction="none")
    tensor([0.0000, 0.6693])
    """
    check_options(reduction, label_smoothing, ignore_index)
    dtype = _product_dtype(hidden, weight, bias)
    batch, classes = hidden.shape[:-1], weight.shape[0]
    rows = math.prod(batch)
    if check_target(target, (*batch, classes), -1):
        target = target.long().reshape(-1)
    else:
        target = target.reshape(rows, classes)
    check_device(target, hidden, "target", "hidden")
    constant = _check_constant(class_weight)
    weights = row_weights(constant, target, classes, ignore_index, "class_weight")
    product = dtype or hidden.dtype
    one = hidden.new_ones((), dtype=loss_dtype(product))
    shares = one.expand(target.shape[0]) if weights is None else weights.to(one.dtype)
    narrow = product == torch.float16  # gradients divided by the number of rows could underflow
    early = reduction == "mean" and not narrow and rows > 0
    if early:
        shares = shares * mean_of(one, target, weights, ignore_index)
    total, losses = linear_losses(
        hidden.reshape(rows, hidden.shape[-1]),
        weight,
        bias,
        target,
        _alpha_of_rows(alpha, hidden),
        shares,
        ignore_index,
        float(label_smoothing),
        check_rows(chunk_rows),
        dtype,
        summed=reduction != "none",
    )
    result = hidden.dtype if dtype is None else loss_dtype(dtype)
    if reduction == "none":
        losses = losses if weights is None else losses * weights.to(losses.dtype)
        return losses.reshape(batch).to(result)
    if reduction == "mean" and not early:
        total = mean_of(total, target, weights, ignore_index)
    return total.to(result)


def _product_dtype(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> torch.dtype | None:
    """The dtype of products under autocast; None if it is disabled or does not apply to float64."""
    _check_layer(hidden, weight, bias)
    dtype = autocast_dtype(hidden.device)
    if dtype is not None and torch.float64 not in (hidden.dtype, weight.dtype):
        return dtype
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.dtype != hidden.dtype:
            raise FenchelError(
                f"{name} must have the dtype of hidden ({hidden.dtype}), got {tensor.dtype}"
            )
    return None


def _check_layer(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    for name, tensor in (("hidden", hidden), ("weight", weight), ("bias", bias)):
        if tensor is None and name == "bias":
            continue
        if not isinstance(tensor, Tensor) or not tensor.dtype.is_floating_point:
            got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            raise FenchelError(f"{name} must be a floating-point tensor, got {got}")
        check_dense(tensor, name)
        check_device(tensor, hidden, name, "hidden")
    if hidden.ndim == 0 or weight.ndim != 2 or hidden.shape[-1] != weight.shape[1]:
        raise FenchelError(
            "hidden and weight must have shapes (…, D) and (C, D),"
            f" got {tuple(hidden.shape)} and {tuple(weight.shape)}"
        )
    check_classes(weight.shape[0], f"a weight of shape {tuple(weight.shape)}")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise FenchelError(f"bias must have shape ({weight.shape[0]},), got {tuple(bias.shape)}")


def _check_constant(class_weight: Tensor | None) -> Tensor | None:
    if isinstance(class_weight, Tensor) and class_weight.requires_grad:
        raise FenchelError("class_weight must not require grad: pass class_weight.detach()")
    return class_weight


def check_rows(chunk_rows: int | None) -> int:
    """Rows per chunk; 0 leaves the choice to the operator, which knows the number of rows."""
    return 0 if chunk_rows is None else int(check_count(chunk_rows, "chunk_rows"))


def _alpha_of_rows(alpha: float | Tensor, hidden: Tensor) -> float | Tensor:
    """A number, or a tensor (1, 1) or (rows, 1)."""
    alpha = check_parameter(alpha, hidden, -1, name="alpha", above=0)
    if not isinstance(alpha, Tensor):
        return alpha
    if alpha.numel() == 1:
        return alpha.reshape(1, 1)
    return alpha.expand(*hidden.shape[:-1], 1).reshape(-1, 1)
