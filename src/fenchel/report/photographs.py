"""Photographs with what a model attends to: the cells of a grid, or curves."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from math import isqrt

from markupsafe import Markup

from fenchel.errors import FenchelError
from fenchel.report.blocks import Figure
from fenchel.report.svg import element, picture

DARKEST = 0.75  # opacity of the shade over a cell without weight
Curve = Sequence[tuple[float, float]]


def attended_photograph(
    jpeg: bytes,
    size: tuple[int, int],
    cells: Sequence[float] = (),
    curves: Iterable[tuple[float, Curve]] = (),
    caption: str = "Attention",
) -> Figure:
    """A photograph whose cells are the darker the smaller their weights, with curves over it.

    Args:
        jpeg: the file of the photograph.
        size: its width and height in pixels.
        cells: the weights of a square grid, row by row from the top left; none are drawn if it is empty.
            The value of a weight is shown on hover.
        curves: widths of lines, and the points (x, y) of closed curves, from 0 to 1 with y pointing down.
        caption: the caption, to which the number of cells that are exactly zero is added.

    >>> drawn = attended_photograph(b"", (40, 30), [0.5, 0.0, 0.5, 0.0])
    >>> drawn.svg.count("<rect"), drawn.caption
    (4, 'Attention; 2 of 4 cells are exactly zero')
    """
    width, height = size
    side = isqrt(len(cells))
    if side * side != len(cells):
        raise FenchelError(f"cells must be a square grid, got {len(cells)} weights")
    data = b64encode(jpeg).decode("ascii")
    photograph = element("image", href=f"data:image/jpeg;base64,{data}", width=width, height=height)
    largest = max(cells, default=0.0) or 1.0
    shades = [
        _shade(place % side, place // side, width / side, height / side, weight, largest)
        for place, weight in enumerate(cells)
    ]
    lines = [_line(points, thickness, width, height) for thickness, points in curves]
    zeros = sum(weight == 0 for weight in cells)
    note = f"{caption}; {zeros} of {len(cells)} cells are exactly zero" if zeros else caption
    return Figure(picture(width, height, caption, [photograph, *shades, *lines]), note)


def _shade(
    column: int, row: int, width: float, height: float, weight: float, largest: float
) -> Markup:
    return element(
        "rect",
        element("title", f"{weight:.3g}"),
        x=column * width,
        y=row * height,
        width=width,
        height=height,
        fill="black",
        opacity=DARKEST * (1 - weight / largest),
    )


def _line(points: Curve, thickness: float, width: float, height: float) -> Markup:
    path = "L".join(f"{x * width:.1f} {y * height:.1f}" for x, y in points)
    return element("path", d=f"M{path}Z", fill="none", stroke="#ff3b30", stroke_width=thickness)
