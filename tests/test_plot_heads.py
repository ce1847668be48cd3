"""Pictures of attention heads show the values that they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from fenchel import FenchelError, plot
from fenchel.plot.heads import HeadPanel

RECORDS = [
    {"kind": kind, "layer": layer, "head": head, "density": 0.1 + 0.2 * head + 0.3 * layer}
    for kind in ("encoder", "decoder")
    for layer in (0, 1)
    for head in (1, 0)
]


def heights(ax: Any) -> list[list[float]]:
    return [[float(y) for y in line.get_ydata()] for line in ax.lines]


def test_each_kind_of_attention_has_a_panel_with_the_course_of_its_heads():
    courses = {"encoder.0.0": [(1, 1.5), (2, 1.25)], "decoder.0.0": [(1, 1.5), (2, 1.75)]}
    left, right = plot.alpha_courses(courses).axes
    assert left.get_title() == "encoder self-attention"
    assert heights(left) == [[1.5, 1.25]]
    assert heights(right) == [[1.5, 1.75]]


def test_the_bars_of_a_histogram_are_its_counts():
    histogram = {"edges": [1, 1.5, 2], "counts": {"encoder": [3, 1], "decoder": [0, 4]}}
    figure = plot.head_histograms({"one": histogram, "two": histogram}, "α")
    assert len(figure.axes) == 4
    bars: list[Any] = [list(ax.patches) for ax in figure.axes]
    assert [[bar.get_height() for bar in each] for each in bars] == [[3, 1], [0, 4]] * 2
    assert [ax.get_xlabel() for ax in figure.axes] == ["", "", "α", "α"]


def test_densities_of_a_layer_are_sorted():
    figure = plot.head_densities({"model": RECORDS})
    for ax in figure.axes:
        assert heights(ax) == [pytest.approx([0.1, 0.4]), pytest.approx([0.3, 0.6])]


def test_diversity_has_a_line_per_model():
    layers = [{"kind": "self", "layer": n, "diversity": 0.1 * n} for n in range(3)]
    (ax,) = plot.head_diversity({"softmax": layers, "other": layers}).axes
    assert [line.get_label() for line in ax.lines] == ["softmax", "other"]
    assert heights(ax)[0] == pytest.approx([0, 0.1, 0.2])


def test_exact_zeros_of_a_matrix_are_blank():
    panel = HeadPanel("head", ["▁a", "b$", "c"], ["▁a", "b$"], [{0: 1.0}, {0: 0.25, 1: 0.75}, {}])
    first, *_ = plot.head_matrices([panel, panel, panel], columns=2).axes
    image: Any = first.images[0].get_array()
    assert np.ma.getmaskarray(image).tolist() == [[False, True], [False, False], [True, True]]
    assert image[1, 0] == 0.25
    assert [label.get_text() for label in first.get_yticklabels()] == ["▁a", "b$", "c"]


@pytest.mark.parametrize(
    "draw",
    [plot.alpha_courses, plot.head_densities, plot.head_diversity, plot.head_matrices],
)
def test_nothing_to_draw_is_an_error(draw):
    with pytest.raises(FenchelError, match="must not be empty"):
        draw({})
