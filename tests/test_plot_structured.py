"""The figures of the structured maps, and docs/structured.md, show what the maps compute."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fenchel
from fenchel import plot
from fenchel.plot.structured import WORD_SCORES, WORDS, regularizers
from fenchel.plot.surfaces import surface
from tests.pages import ROOT, run_code


def test_the_page_shows_the_groups(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the page saves its figures
    shown = run_code(ROOT / "docs" / "structured.md")["p"]
    assert fenchel.fused_groups(shown.detach()).tolist() == [0, 1, 1, 2, 0, 3]


def test_two_scores_show_smoothed_maxima_and_maps():
    left, right = plot.two_scores().axes
    names = [name for name in regularizers() if name != "oscarmax"]
    assert [line.get_label() for line in left.lines] == names
    for line in left.lines:
        t, value = line.get_data()
        assert (value >= np.maximum(t, 0) - 1e-9).all()
        if line.get_label() != "softmax":
            np.testing.assert_allclose(
                value[np.abs(t) > 2], np.maximum(t, 0)[np.abs(t) > 2], atol=1e-9
            )
    drawn = {line.get_label(): line.get_data() for line in right.lines}
    t, p = drawn["fusedmax"]
    scores = torch.stack((torch.from_numpy(t), torch.zeros(len(t)).double()), -1)
    np.testing.assert_allclose(p, fenchel.fusedmax(scores, 0.2)[:, 0].numpy(), atol=1e-12)
    np.testing.assert_allclose(p[np.abs(t) < 0.39], 0.5, atol=1e-12)


def test_three_scores_draw_one_surface_per_map():
    figure = plot.three_scores(points=9)
    assert [ax.get_title() for ax in figure.axes] == list(regularizers())


def test_three_scores_draw_the_second_probability():
    figure = plot.three_scores(points=9)
    for ax, omega in zip(figure.axes, regularizers().values(), strict=True):
        expected = surface(omega.map, 3.0, 9, entry=2)[2]
        lowest, highest = ax.zz_dataLim.intervalx
        assert (lowest, highest) == pytest.approx((float(expected.min()), float(expected.max())))
    t1, t2, p2 = surface(fenchel.softmax, 3.0, 9, entry=2)
    scores = torch.stack((t1, t2, torch.zeros_like(t1)), -1)
    assert torch.equal(p2, fenchel.softmax(scores)[..., 1])
    with pytest.raises(fenchel.FenchelError, match="entry must be 1, 2 or 3, got 4"):
        plot.simplex_surface(fenchel.softmax, entry=4)


def test_weights_over_text_have_a_border_wherever_the_weight_changes():
    maps = {"fusedmax": lambda x: fenchel.fusedmax(x, 0.2), "zero": fenchel.sparsemax}
    ax = plot.weights_over_text(maps=maps)
    p = fenchel.fusedmax(torch.tensor(WORD_SCORES, dtype=torch.float64), 0.2)
    borders = [
        line for line in ax.lines if line.get_color() == "white" and max(line.get_ydata()) < 0.5
    ]
    assert len(borders) == int((p.diff() != 0).sum())
    assert [label.get_text() for label in ax.get_xticklabels()] == WORDS


def test_weights_over_text_require_one_score_per_word():
    scores = torch.randn(3, requires_grad=True)
    assert len(fenchel.plot.weights_over_text(["a", "b", "c"], scores).get_xticklabels()) == 3
    with pytest.raises(fenchel.FenchelError, match=r"one entry per word \(2\), got 3"):
        fenchel.plot.weights_over_text(["a", "b"], scores)


@pytest.mark.parametrize("strength", [0.0, 0.03])
def test_regions_leave_zeros_blank(strength):
    *_, last = panels(plot.regions(strength=strength, size=14))
    shown = last.images[0].get_array()
    values = np.ma.filled(shown.astype(float), np.nan)
    assert np.nansum(values) == pytest.approx(1, abs=1e-6)
    assert np.isnan(values).any()


def panels(figure) -> list:
    """Return the axes with an image, without those of colour bars."""
    return [ax for ax in figure.axes if ax.images]


def luminance(colour) -> float:
    return float(np.dot(np.asarray(colour)[:3], (0.2126, 0.7152, 0.0722)))


def assert_darker_is_larger(image) -> None:
    light = [luminance(image.cmap(share)) for share in np.linspace(0, 1, 20)]
    assert light == sorted(light, reverse=True)
    assert light[0] > light[-1] + 0.5


def test_weights_are_darker_if_larger_and_white_if_zero():
    text = plot.weights_over_text()
    scores, *weights = (ax.images[0] for ax in panels(plot.regions()))
    assert_darker_is_larger(scores)
    for image in (*text.images, *weights):
        assert_darker_is_larger(image)
        assert luminance(image.cmap(np.nan)) == 1  # exact zeros are masked
        assert luminance(image.cmap(0.0)) < 0.95  # a small weight is not taken for a zero
        assert image.get_clim()[0] == 0
    assert len({image.get_clim() for image in weights}) == 1


def test_weights_over_text_show_the_weights_of_every_map():
    maps = {"softmax": fenchel.softmax, "sparsemax": fenchel.sparsemax}
    ax = plot.weights_over_text(maps=maps)
    scores = torch.tensor(WORD_SCORES, dtype=torch.float64)
    shown = np.ma.filled(ax.images[0].get_array().astype(float), 0.0)
    expected = torch.stack([map(scores) for map in maps.values()])
    np.testing.assert_allclose(shown, expected.numpy(), atol=1e-12)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(maps)


def test_weights_have_a_colour_bar():
    (text,) = plot.weights_over_text().images
    scores, *_, last = (ax.images[0] for ax in panels(plot.regions()))
    labels = [image.colorbar.ax.get_ylabel() for image in (text, scores, last)]
    assert labels == ["weight (white: 0)", "score", "weight (white: 0)"]
