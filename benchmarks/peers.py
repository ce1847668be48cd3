"""The operations of other packages, if they are installed: `entmax`, and `adasplash` for GPUs."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.attention import ATTENTION
from benchmarks.decoding import DECODERS
from benchmarks.registry import OTHER_ALPHAS, OURS, Operation, a_loss, a_map
from benchmarks.searching import SEARCHES
from benchmarks.sparse_attention import SPARSE_ATTENTION

TOP_K = 100
PACKAGES = ("entmax", "adasplash")
# On a GPU of the many bisections two suffice: they all cost the same.
_CPU = ("cpu",)


def operations() -> dict[tuple[str, str], Operation]:
    """All operations that can run here, by family and name."""
    found = [*OURS, *ATTENTION, *SPARSE_ATTENTION, *SEARCHES, *DECODERS]
    for package, build in zip(PACKAGES, (_entmax, _adasplash), strict=True):
        if importlib.util.find_spec(package) is not None:
            found += build(importlib.import_module(package))
    return {(operation.family, operation.name): operation for operation in found}


def _entmax(entmax: Any) -> list[Operation]:
    def bisect(alpha: float) -> Operation:
        name = f"entmax.entmax_bisect({alpha:g})"
        devices = {} if alpha in (1.5, 1.3) else {"devices": _CPU}
        return a_map(name, lambda x: entmax.entmax_bisect(x.scores, alpha), **devices)

    return [
        a_map("entmax.sparsemax", lambda x: entmax.sparsemax(x.scores)),
        a_map(f"entmax.sparsemax(k={TOP_K})", lambda x: entmax.sparsemax(x.scores, k=TOP_K)),
        a_map("entmax.entmax15", lambda x: entmax.entmax15(x.scores)),
        a_map(f"entmax.entmax15(k={TOP_K})", lambda x: entmax.entmax15(x.scores, k=TOP_K)),
        *map(bisect, (1.5, *OTHER_ALPHAS)),
        a_map(
            "entmax.entmax_bisect(α a row)",
            lambda x: entmax.entmax_bisect(x.scores, x.alpha),
            learns=("scores", "alpha"),
        ),
        a_map("entmax.normmax_bisect", lambda x: entmax.normmax_bisect(x.scores), devices=_CPU),
        a_map("entmax.budget_bisect", lambda x: entmax.budget_bisect(x.scores), devices=_CPU),
        a_loss("entmax.sparsemax_loss", lambda x: entmax.sparsemax_loss(x.scores, x.target).mean()),
        a_loss("entmax.entmax15_loss", lambda x: entmax.entmax15_loss(x.scores, x.target).mean()),
        a_loss(
            f"entmax.entmax15_loss(k={TOP_K})",
            lambda x: entmax.entmax15_loss(x.scores, x.target, TOP_K).mean(),
        ),
        a_loss(
            "entmax.entmax_bisect_loss(1.3)",
            lambda x: entmax.entmax_bisect_loss(x.scores, x.target, 1.3).mean(),
        ),
    ]


def _adasplash(package: Any) -> list[Operation]:
    kernels = importlib.import_module(f"{package.__name__}.triton_entmax_v2")
    both = kernels._fwd_entmax, kernels._bwd_entmax
    offered = both[0].configs
    tuned: list[tuple[int, torch.dtype]] = []

    def run(scores: Tensor, alpha: float) -> Tensor:
        # It tunes its forward kernel once for rows of every length; to its advantage, for each. Of its
        # block sizes the two largest that a row fills are tried: to compile all would take minutes.
        problem = scores.shape[-1], scores.dtype
        if tuned != [problem]:
            for kernel in both:
                kernel.cache.clear()
                kernel.configs = largest_blocks(offered, problem[0])
            tuned[:] = [problem]
        return kernels.triton_entmax(scores, alpha=alpha)

    def at(alpha: float) -> Operation:
        name = f"adasplash.triton_entmax({alpha:g})"
        return a_map(name, lambda x: run(x.scores, alpha), devices=("cuda",))

    return [at(alpha) for alpha in (2.0, 1.5, 1.3)]


def largest_blocks(configs: Sequence[Any], columns: int) -> list[Any]:
    """The configurations with the two largest blocks that are not longer than a row."""
    sizes = sorted({config.kwargs["BLOCK_N"] for config in configs})
    filled = [size for size in sizes if size <= columns] or sizes[:1]
    return [config for config in configs if config.kwargs["BLOCK_N"] in filled[-2:]]


OPERATIONS = operations()
