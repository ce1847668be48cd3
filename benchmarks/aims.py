"""What the kernels aim at on a GPU, and the measurement that is farthest from each aim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.registry import UNFUSED
from benchmarks.rows import Row

USUAL = ("fenchel.sparsemax", "fenchel.entmax(1.5)")
USUAL_LOSSES = ("fenchel.sparsemax_loss", "fenchel.entmax_loss(1.5)")
LAYER = ("fenchel.linear_entmax_loss(1.5)",)
BASELINES = ("torch.softmax", "F.cross_entropy", UNFUSED)
FORWARD, BOTH = "forward", "forward+backward"


class Compared(NamedTuple):
    """A row, and that of its baseline on the same case."""

    row: Row
    baseline: Row | None

    @property
    def memory(self) -> float | None:
        """Its peak over the baseline's."""
        peaks = self.row.peak_mib, self.baseline and self.baseline.peak_mib
        return peaks[0] / peaks[1] if peaks[0] is not None and peaks[1] else None


@dataclass(frozen=True)
class Aim:
    """A bound on a figure of all rows that it concerns; from above, unless it is the least."""

    what: str
    figure: Callable[[Compared], float | None]
    concerns: Callable[[Row], bool]
    most: float | None = None
    least: float = 0.0

    def holds(self, value: float) -> bool:
        """A figure that is no number keeps no bound."""
        return value <= self.most if self.most is not None else value >= self.least

    @property
    def bound(self) -> str:
        return f"≤ {self.most:.3g}" if self.most is not None else f"≥ {self.least:.3g}"


def _ratio(compared: Compared) -> float | None:
    return compared.row.ratio_q50


def _copies(compared: Compared) -> float | None:
    return compared.row.copies_q50


def _speedup(compared: Compared) -> float | None:
    return compared.row.speedup_q50


def _error(compared: Compared) -> float | None:
    return compared.row.error


def _memory(compared: Compared) -> float | None:
    return compared.memory


def _rows(
    operations: Sequence[str], direction: str, dtype: str = "", columns: int = 0
) -> Callable[[Row], bool]:
    """Rows of some operations in one direction, perhaps of one dtype, and from so many columns on."""
    return lambda row: (
        row.operation in operations
        and row.baseline in BASELINES
        and row.direction == direction
        and row.clock == "device"
        and dtype in ("", row.dtype)
        and row.columns >= columns
    )


def _other_alphas(row: Row) -> bool:
    some = row.operation.startswith("fenchel.entmax(") and row.operation not in USUAL
    return some and row.direction == FORWARD and row.clock == "device"


def _maps_in_float32(row: Row) -> bool:
    return row.operation.startswith("fenchel.") and row.dtype == "float32"


AIMS = (
    Aim("sparsemax, 1.5-entmax: time over `torch.softmax`", _ratio, _rows(USUAL, FORWARD), 1.0),
    Aim("… with gradients", _ratio, _rows(USUAL, BOTH), 1.0),
    Aim(
        "… copies of the scores, from 1024 columns on, float32",
        _copies,
        _rows(USUAL, FORWARD, "float32", 1024),
        1.3,
    ),
    Aim("… bfloat16", _copies, _rows(USUAL, FORWARD, "bfloat16", 1024), 1.8),
    Aim("… times as fast as the fastest peer", _speedup, _rows(USUAL, FORWARD), least=3.0),
    Aim("entmax, any other α: time over `torch.softmax`", _ratio, _other_alphas, 2.0),
    Aim("every map: largest error, float32", _error, _maps_in_float32, 2e-7),
    Aim("losses: time over `F.cross_entropy`", _ratio, _rows(USUAL_LOSSES, BOTH), 0.5),
    Aim("… peak memory over its", _memory, _rows(USUAL_LOSSES, BOTH), 1.0),
    Aim("output layer: time over layer and loss apart", _ratio, _rows(LAYER, BOTH), 1.1),
    Aim("… peak memory over theirs", _memory, _rows(LAYER, BOTH), 1 / 6),
)


def table_of_aims(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """(aim, bound, worst figure, whether it holds, where it was measured); none without a GPU."""
    on_gpu = [row for row in rows if row.device.startswith("cuda")]
    baselines = {_case_of(row): row for row in on_gpu if row.operation == row.baseline}
    lines = []
    for aim in AIMS:
        compared = [Compared(r, baselines.get(_case_of(r))) for r in on_gpu if aim.concerns(r)]
        figures = [(value, c.row) for c in compared if (value := aim.figure(c)) is not None]
        if figures:
            value, row = _worst(aim, figures)
            where = f"`{row.operation}`, {row.shape}, {row.dtype}"
            held = "yes" if aim.holds(value) else "no"
            lines.append((aim.what, aim.bound, f"{value:.3g}", held, where))
    return lines


def _worst(aim: Aim, figures: Sequence[tuple[float, Row]]) -> tuple[float, Row]:
    """The figure farthest on the wrong side; one that is no number is farther than all."""
    sign = 1 if aim.most is not None else -1
    return max(figures, key=lambda pair: (pair[0] != pair[0], sign * pair[0]))


def _case_of(row: Row) -> tuple[str | int, ...]:
    return (*row.table, row.rows, row.width, row.columns, row.commit)
