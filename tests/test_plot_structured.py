"""The pictures of the structured maps, and the page about them, show what the maps give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fenchel
from fenchel import plot
from fenchel.plot.structured import WORD_SCORES, WORDS, regularizers
from tests.pages import ROOT, run_code


def test_the_page_shows_the_groups_that_there_are():
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


def test_three_scores_draw_one_surface_a_map():
    figure = plot.three_scores(points=9)
    assert [ax.get_title() for ax in figure.axes] == list(regularizers())


def test_segments_have_a_border_wherever_the_weight_changes():
    maps = {"fusedmax": lambda x: fenchel.fusedmax(x, 0.2), "zero": fenchel.sparsemax}
    ax = plot.segments(maps=maps)
    p = fenchel.fusedmax(torch.tensor(WORD_SCORES, dtype=torch.float64), 0.2)
    borders = [line for line in ax.lines if line.get_ydata()[0] > -0.5]
    assert len(borders) == int((p.diff() != 0).sum())
    assert [label.get_text() for label in ax.get_xticklabels()] == WORDS


def test_every_word_has_a_score_which_may_be_a_tensor():
    scores = torch.randn(3, requires_grad=True)
    assert len(fenchel.plot.segments(["a", "b", "c"], scores).get_xticklabels()) == 3
    with pytest.raises(fenchel.FenchelError, match="every word has a score: expected 2 scores"):
        fenchel.plot.segments(["a", "b"], scores)


@pytest.mark.parametrize("strength", [0.0, 0.03])
def test_regions_are_drawn_with_zeros_left_out(strength):
    *_, last = plot.regions(strength=strength, size=14).axes
    shown = last.images[0].get_array()
    values = np.ma.filled(shown.astype(float), np.nan)
    assert np.nansum(values) == pytest.approx(1, abs=1e-6)
    assert np.isnan(values).any()


def luminance(colour) -> float:
    return float(np.dot(np.asarray(colour)[:3], (0.2126, 0.7152, 0.0722)))


def test_larger_is_darker_in_segments_and_in_regions_alike():
    p = fenchel.softmax(torch.tensor(WORD_SCORES, dtype=torch.float64))
    bars = plot.segments(maps={"softmax": fenchel.softmax}).patches
    by_weight = [bars[place] for place in p.argsort().tolist()]
    light = [luminance(bar.get_facecolor()) for bar in by_weight]
    assert light == sorted(light, reverse=True)
    assert light[0] > light[-1] + 0.1
    scores, *attended = (ax.images[0] for ax in plot.regions().axes)
    for image in (scores, *attended):
        light = [luminance(image.cmap(share)) for share in np.linspace(0, 1, 20)]
        assert light == sorted(light, reverse=True)
    assert len({image.get_clim() for image in attended}) == 1
    assert attended[0].get_clim()[0] == 0
