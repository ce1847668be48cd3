"""What is asked of the contenders: shapes by device, and the tensors of a problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

COLUMNS = (64, 512, 8192, 128_000)
CLASSES = 32_000
GPU_MAPS = ((131_072, 128), (65_536, 1024), (16_384, 8192), (4096, 32_768), (2048, 131_072))
GPU_LOSSES = ((8192, 32_000), (4096, 128_256))
GPU_LAYER = (8192, 2048, 128_256)  # tokens, width, classes
TINY = (4, 64)  # so little work that what is left is the cost of the call


@dataclass(frozen=True)
class Case:
    """One problem: what all contenders of a race are given.

    `width` is that of the hidden states of which a layer makes its scores. The clock is "device", or
    "host" where only the cost of calling counts.
    """

    family: str
    rows: int
    columns: int
    dtype: torch.dtype = torch.float32
    backward: bool = False
    device: str = "cpu"
    width: int = 0
    clock: str = "device"

    @property
    def direction(self) -> str:
        return "forward+backward" if self.backward else "forward"

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def __str__(self) -> str:
        shape = shape_name(self.rows, self.width, self.columns)
        return f"{self.family} {shape} {self.dtype_name} {self.direction}"


def shape_name(rows: int, width: int, columns: int) -> str:
    sizes = (rows, width, columns) if width else (rows, columns)
    return " × ".join(map(str, sizes))


@dataclass(frozen=True)
class Inputs:
    """The tensors of a case; those that its family does not use are empty.

    `upstream` is the gradient that arrives at a map's output.
    """

    scores: Tensor
    alpha: Tensor
    target: Tensor
    upstream: Tensor
    hidden: Tensor
    weight: Tensor


def make_inputs(case: Case, seed: int = 0) -> Inputs:
    """Normal scores, and one α in [1.25, 2] a row (in float32 at least, as a parameter is)."""
    generator = torch.Generator(case.device).manual_seed(seed)
    place = {"generator": generator, "device": case.device}

    def normal(wanted: bool, *shape: int) -> Tensor:
        return torch.randn(shape if wanted else 0, dtype=case.dtype, **place)

    layer = case.family == "layers"
    scale = 1 / math.sqrt(case.width) if layer else 1.0  # so that the scores are normal too
    wide = torch.promote_types(case.dtype, torch.float32)
    return Inputs(
        scores=normal(not layer, case.rows, case.columns),
        alpha=1.25 + 0.75 * torch.rand((case.rows, 1), dtype=wide, **place),
        target=torch.randint(case.columns, (case.rows,), **place),
        upstream=normal(case.family == "maps", case.rows, case.columns),
        hidden=normal(layer, case.rows, case.width),
        weight=scale * normal(layer, case.columns, case.width),
    )


def cpu_cases(elements: int, dtypes: Sequence[torch.dtype] = (torch.float32,)) -> list[Case]:
    """Maps at about `elements` scores whatever the columns; losses at eight times as many."""
    shapes = [("maps", max(elements // columns, 1), columns) for columns in COLUMNS]
    shapes.append(("losses", max(8 * elements // CLASSES, 1), CLASSES))
    return [
        Case(family, rows, columns, dtype, backward)
        for dtype in dtypes
        for family, rows, columns in shapes
        for backward in (False, True)
    ]


def gpu_cases(dtypes: Sequence[torch.dtype], share: int = 1) -> list[Case]:
    """Maps of 2^24 to 2^28 scores, losses and layers of a vocabulary; or that share of the rows."""
    cases = []
    for dtype in dtypes:
        cases += [
            Case("maps", rows // share, columns, dtype, backward, "cuda")
            for rows, columns in GPU_MAPS
            for backward in (False, True)
        ]
        cases += [
            Case("losses", rows // share, columns, dtype, True, "cuda")
            for rows, columns in GPU_LOSSES
        ]
        rows, width, classes = GPU_LAYER
        cases.append(Case("layers", rows // share, classes, dtype, True, "cuda", width))
    cases += [
        Case("maps", *TINY, torch.float32, backward, "cuda", clock="host")
        for backward in (False, True)
    ]
    return cases
