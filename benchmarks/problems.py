"""The problems: families of cases, and their shapes by device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

ELEMENTS = 4_096_000  # scores of a problem on the CPU; fewer shrink all its problems in proportion
COLUMNS = (64, 512, 8192, 128_000)
CLASSES = 32_000
STRUCTURED = (
    (4096, 64), (4096, 512), (256, 8192),
    (2048, 1024), (128, 16_384), (8, 262_144), (2, 1_048_576),  # the same number of scores in longer rows
)  # fmt: skip
IMAGES, FUNCTIONS = 512, 100  # densities over images, and functions of the basis
REGIONS = (49, 196, 784, 3136)
REGION_BATCH, REGION_WIDTH = 64, 64
SENTENCES, BEAM = (256, 1024), 5
DECODERS = ((32, 128, 10), (64, 300, 12), (64, 500, 25))  # sentences, hidden size, target symbols
HEADS = 8  # of attention
SHORT_BATCH = 64  # sequences in a batch of short ones
GPU_MAPS = ((131_072, 128), (65_536, 1024), (16_384, 8192), (4096, 32_768), (2048, 131_072))
GPU_LOSSES = ((8192, 32_000), (4096, 128_256))
GPU_LAYER = (8192, 2048, 128_256)  # tokens, width, classes
GPU_STRUCTURED = ((65_536, 128), (16_384, 1024))


class AttentionFamily(NamedTuple):
    """Problems of attention: (queries, size, keys), and the standard deviation of the scores.

    If `is_trained`, queries, keys and values are those of a trained model (`trained_attention`).
    """

    shapes: tuple[tuple[int, int, int], ...]
    deviation: float = 1.0
    is_causal: bool = True
    batch: int = 1
    backward: tuple[bool, ...] = (False, True)
    is_trained: bool = False


_LENGTHS = (512, 1024, 2048, 4096, 8192, 16_384)
ATTENTION_FAMILIES = {
    "attention": AttentionFamily(tuple((n, 64, n) for n in _LENGTHS)),
    "attention-peaked": AttentionFamily(tuple((n, 64, n) for n in _LENGTHS[:5]), deviation=4.0),
    "attention-trained": AttentionFamily(tuple((n, 64, n) for n in (512, 2048)), is_trained=True),
    "attention-wide": AttentionFamily(((2048, 128, 2048), (8192, 128, 8192))),
    "attention-full": AttentionFamily(((512, 64, 512), (2048, 64, 2048)), is_causal=False),
    "attention-short": AttentionFamily(((64, 64, 64),), is_causal=False, batch=SHORT_BATCH),
    "attention-decode": AttentionFamily(
        tuple((1, 64, n) for n in (4096, 32_768, 131_072)), is_causal=False, backward=(False,)
    ),
}
TINY = (4, 64)  # measures the cost of the call


@dataclass(frozen=True)
class Case:
    """A problem that all operations of a family are measured on.

    `width` is that of the hidden states of which a layer makes its scores, of an image's regions, of a
    beam, or of a decoder. The clock is "device", or "host" where only the cost of calling counts.
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


def cpu_cases(
    elements: int = ELEMENTS, dtypes: Sequence[torch.dtype] = (torch.float32,)
) -> list[Case]:
    """Maps with about `elements` scores for all numbers of columns; losses with eight times as many."""
    maps = [("maps", max(elements // columns, 1), columns) for columns in COLUMNS]
    losses = [("losses", max(8 * elements // CLASSES, 1), CLASSES)]
    cases = []
    for dtype in dtypes:
        cases += [
            Case(family, rows, columns, dtype, backward)
            for family, rows, columns in maps + losses
            for backward in (False, True)
        ]
        cases += [
            Case("structured", max(rows * elements // ELEMENTS, 1), columns, dtype, True)
            for rows, columns in STRUCTURED
            if columns <= elements
        ]
    share = elements / ELEMENTS
    cases += _continuous_cases("cpu", share) + _search_cases("cpu", share)
    cases += _decoder_cases("cpu", share) + _attention_cases(share)
    return cases + _call_cases("cpu")


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
            Case("structured", rows // share, columns, dtype, True, "cuda")
            for rows, columns in GPU_STRUCTURED
        ]
    cases += _continuous_cases("cuda", 1 / share) + _search_cases("cuda", 1 / share)
    cases += _decoder_cases("cuda", 1 / share)
    return cases + _call_cases("cuda")


def _call_cases(device: str) -> list[Case]:
    """Tiny problems, which measure the cost of a call, without and with gradients."""
    return [
        Case("maps", *TINY, torch.float32, backward, device, clock="host")
        for backward in (False, True)
    ]


def _continuous_cases(device: str, share: float) -> list[Case]:
    """Expectations of a basis, and a layer by the number of an image's regions; in float32."""
    images = max(int(IMAGES * share), 1)
    cases = [Case("continuous", images, FUNCTIONS, backward=True, device=device)]
    batch = max(int(REGION_BATCH * share), 1)
    cases += [
        Case("continuous-regions", batch, regions, backward=True, device=device, width=REGION_WIDTH)
        for regions in REGIONS
    ]
    return cases


def _search_cases(device: str, share: float) -> list[Case]:
    """Sentences of a batch; the columns are the prefixes of all their beams."""
    counts = [int(sentences * share) for sentences in SENTENCES]
    return [
        Case("search", count, count * BEAM, device=device, width=BEAM) for count in counts if count
    ]


def _decoder_cases(device: str, share: float) -> list[Case]:
    """Training steps of models; the columns are the symbols of a target."""
    shapes = [(int(rows * share), width, columns) for rows, width, columns in DECODERS]
    return [
        Case("decoder", rows, columns, backward=True, device=device, width=width)
        for rows, width, columns in shapes
        if rows
    ]


def _attention_cases(share: float) -> list[Case]:
    """Queries are rows and keys columns; lengths that are a share of both."""
    cases = [
        Case(
            family,
            queries if queries == 1 else max(int(queries * share), 1),
            max(int(keys * share), 1),
            backward=backward,
            width=size,
        )
        for family, problems in ATTENTION_FAMILIES.items()
        for queries, size, keys in problems.shapes
        for backward in problems.backward
    ]
    return list(dict.fromkeys(cases))
