"""The figures show what the maps compute."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from itertools import pairwise
from types import FunctionType

import numpy as np
import pytest
import torch

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure
from torch.distributions import Independent, Normal

import fenchel
from fenchel import plot
from fenchel.continuous import BetaGaussian, Mixture, TruncatedParaboloid
from fenchel.plot.map_curves import ALPHAS
from fenchel.plot.style import alpha_colour, new_figure
from fenchel.plot.surfaces import surface
from fenchel.search import Answer, Completion, CompletionStep, Hypothesis

MAPS = {
    "softmax": fenchel.softmax,
    "sparsemax": fenchel.sparsemax,
    "my own": lambda x: fenchel.entmax(x, 3.0),
}


def ink(figure) -> float:
    """Return the share of the pixels that are not white."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    return float((pixels < 250).any(-1).mean())


def reference(map, scores):
    with fenchel.implementation("reference"):
        return map(scores)


def two_scores(t) -> torch.Tensor:
    t = torch.as_tensor(t)
    return torch.stack((t, torch.zeros_like(t)), -1)


def test_importing_plot_does_not_load_matplotlib():
    code = "import sys, fenchel.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", plot.__all__)
def test_every_function_checks_for_matplotlib_before_anything_else(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        fenchel.FenchelError, match=r"matplotlib must be installed.*fenchel\[plot\]"
    ):
        getattr(plot, name)("an invalid argument")


def test_a_figure_without_matplotlib_names_the_extra(monkeypatch):
    for module in ("matplotlib", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        fenchel.FenchelError, match=r"matplotlib must be installed.*fenchel\[plot\]"
    ):
        new_figure(1, 1)


def test_only_drawing_functions_are_exported_and_none_shadows_a_module():
    modules = {module.name for module in pkgutil.iter_modules(plot.__path__)}
    assert modules.isdisjoint(plot.__all__)
    assert all(isinstance(getattr(plot, name), FunctionType) for name in plot.__all__)
    assert {name for name, value in vars(plot).items() if isinstance(value, FunctionType)} == set(
        plot.__all__
    )


def test_pyplot_is_never_loaded(tmp_path):
    code = (
        "import sys, fenchel.plot as p;"
        f"p.alpha_sweep().savefig({str(tmp_path / 'sweep.png')!r});"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert (tmp_path / "sweep.png").stat().st_size > 10_000


def test_curves_show_the_maps():
    ax = plot.curves(MAPS, reach=2.5)
    drawn = {line.get_label(): line for line in ax.get_lines()}
    assert set(drawn) == set(MAPS)
    for name, line in drawn.items():
        t, p = line.get_data()
        assert t[0] == -2.5
        assert t[-1] == 2.5
        expected = reference(MAPS[name], two_scores(t))[:, 0]
        torch.testing.assert_close(torch.as_tensor(p), expected, rtol=0, atol=1e-12)


def test_maps_of_the_family_keep_their_colours():
    ax = plot.curves(MAPS)
    colours = {line.get_label(): tuple(line.get_color()) for line in ax.get_lines()}
    assert colours["softmax"] == tuple(alpha_colour(1.0))
    assert colours["sparsemax"] == tuple(alpha_colour(2.0))
    assert len(set(colours.values())) == 3


def test_dots_on_alpha_curves_are_where_probabilities_become_zero_or_one():
    ax = plot.alpha_curves((1.0, 1.5, 4.0))
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) > 2]
    dots = [line for line in ax.get_lines() if len(line.get_xdata()) == 2]
    assert [line.get_label() for line in lines] == ["α = 4", "α = 1.5", "α = 1"]
    for line, alpha in zip(lines, (4.0, 1.5, 1.0), strict=True):
        t, p = line.get_data()
        expected = reference(lambda x, a=alpha: fenchel.entmax(x, a), two_scores(t))[:, 0]
        torch.testing.assert_close(torch.as_tensor(p), expected, rtol=0, atol=1e-12)
    ends = [dot.get_xdata()[1] for dot in dots]
    assert ends == pytest.approx([1 / 3, 2.0])
    for dot, alpha in zip(dots, (4.0, 1.5), strict=True):
        assert fenchel.entmax(two_scores(dot.get_xdata()[1]), alpha)[0] == 1


def test_alpha_bars_are_the_probabilities_and_zeros_have_dots():
    scores, alphas = (0.3, 1.5, -2.0, 1.2), (1.0, 2.0)
    ax = plot.alpha_bars(alphas, scores)
    x = torch.tensor(scores, dtype=torch.float64)
    dots = [line for line in ax.get_lines() if line.get_marker() == "."]
    for bars, dot, alpha in zip(ax.containers, dots, alphas, strict=True):
        p = reference(lambda x, a=alpha: fenchel.entmax(x, a), x)
        heights = torch.tensor([bar.get_height() for bar in bars], dtype=torch.float64)
        torch.testing.assert_close(heights, p, rtol=0, atol=1e-12)
        assert list(dot.get_xdata()) == [i for i in range(4) if p[i] == 0]
    assert len(dots[1].get_xdata()) == 2


def test_the_dots_of_the_alpha_sweep_are_explained():
    left, right = plot.alpha_sweep().axes
    assert left.get_xlabel() == "score t (dots: reaches exactly 0 or 1)"
    assert right.get_xlabel() == "scores (grey dots: exactly 0)"
    dense_left, dense_right = plot.alpha_sweep((0.5, 1.0)).axes  # no zeros, no dots
    assert (dense_left.get_xlabel(), dense_right.get_xlabel()) == ("score t", "scores")


COMPLETION = Completion((CompletionStep(2, 0.5, ((2, 0.5),), 2),))
WITH_TEXT = {
    "lattice": lambda words: plot.lattice(
        Answer((Hypothesis((0, 1), 0.5, -0.7, True),), 0.0), words, title=" ".join(words)
    ),
    "autocompletion": lambda words: plot.autocompletion(COMPLETION, words, eos=9),
    "weights_over_text": lambda words: plot.weights_over_text(words, [1.0, 2.0, 0.0]),
    "density_over_text": lambda words: plot.density_over_text(words, Normal(0.5, 0.1)),
}


@pytest.mark.parametrize("name", WITH_TEXT)
def test_words_are_not_parsed_as_formulas(name, tmp_path):
    WITH_TEXT[name](["$5_$", "for", "$^$"]).figure.savefig(tmp_path / "text.svg")


def test_alpha_sweep_draws_two_panels_on_the_given_figure():
    figure = new_figure(6, 3)
    assert plot.alpha_sweep(figure=figure) is figure
    assert len(figure.axes) == 2
    assert ink(figure) > 0.02


@pytest.mark.parametrize("map", [fenchel.softmax, fenchel.sparsemax, fenchel.budget])
def test_the_surface_shows_the_probability_of_the_first_score(map):
    ax = plot.simplex_surface(map, title="a map", points=9, reach=2.0)
    assert ax.get_title() == "a map"
    faces = ax.collections[0].get_facecolor()
    assert ink(ax.figure) > 0.02
    assert len(faces) == 8 * 8

    t1, t2, p1 = surface(map, 2.0, 9)
    expected = map(torch.stack((t1, t2, torch.zeros_like(t1)), -1))[..., 0]
    assert torch.equal(p1, expected)
    lowest, highest = ax.zz_dataLim.intervalx
    assert lowest == pytest.approx(float(expected.min()))
    assert highest == pytest.approx(float(expected.max()))


def test_the_surface_is_grey_exactly_where_it_is_zero():
    ax = plot.simplex_surface(fenchel.sparsemax, points=13)
    ax.figure.canvas.draw()
    grey = (abs(ax.collections[0].get_facecolor()[:, :3] - 0.87) < 1e-6).all(1)
    p1 = surface(fenchel.sparsemax, 3.0, 13)[2]
    zero = p1 == 0
    faces = zero[:-1, :-1] & zero[1:, :-1] & zero[:-1, 1:] & zero[1:, 1:]
    assert grey.sum() == int(faces.sum()) > 0


def test_losses_are_those_of_the_paper():
    lines = {line.get_label(): line.get_data() for line in plot.losses().get_lines()}
    assert set(lines) == {"logistic (softmax)", "1.5-entmax", "sparsemax (Huber)", "hinge"}
    t = lines["hinge"][0]
    huber = np.where(t >= 1, 0, np.where(t <= -1, -t, (t - 1) ** 2 / 4))
    np.testing.assert_allclose(lines["sparsemax (Huber)"][1], huber, atol=1e-12)
    np.testing.assert_allclose(lines["logistic (softmax)"][1], np.log1p(np.exp(-t)), atol=1e-12)
    np.testing.assert_allclose(lines["hinge"][1], np.maximum(0, 1 - t))
    smooth = lines["1.5-entmax"][1]
    assert (smooth[t >= 2] == 0).all()
    assert (smooth[t < 1.9] > 0).all()


LONG = ["antidisestablishmentarianism", "floccinaucinihilipilification", "x", "institutionally"]
PLACES, AROUND = torch.tensor([0.2, 0.8]), 0.01 * torch.eye(2)
MIXTURE = Mixture(torch.tensor([0.5, 0.5]), PLACES, torch.tensor([0.01, 0.02]))
ELLIPSE = TruncatedParaboloid(PLACES, AROUND)


def drawn_texts(ax) -> list:
    """Return the texts inside the axes with their bounding boxes in pixels."""
    ax.figure.canvas.draw()
    return [(text, text.get_window_extent()) for text in ax.texts]


@pytest.mark.parametrize("alphas", [ALPHAS, (1.45, 1.5, 1.55), (0.5, 0.8, 1.0, 1.1, 1.3, 2.0)])
def test_labels_of_curves_do_not_overlap(alphas):
    ax = plot.alpha_curves(alphas)
    boxes = [box for _, box in drawn_texts(ax)]
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])
    assert boxes or len(ax.get_legend().get_texts()) == len(alphas)


@pytest.mark.parametrize("count", [1, 4, 9, 60])
def test_labels_of_bars_are_inside_the_figure(count):
    ax = plot.alpha_bars(ALPHAS, torch.linspace(-2, 2, count))
    texts = drawn_texts(ax)
    for _, box in texts:
        assert ax.figure.bbox.x0 <= box.x0
        assert box.x1 <= ax.figure.bbox.x1
    below = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(one.x1 < other.x0 for one, other in pairwise(below))
    lowest = min(bar.get_y() for bars in ax.containers for bar in bars)
    assert ax.get_ylim()[0] == pytest.approx(lowest, abs=0.05)  # no empty space below the bars


def test_all_curves_look_different():
    maps = {f"{name}": fenchel.softmax for name in range(11)}
    styles = [(line.get_color(), line.get_linestyle()) for line in plot.curves(maps).get_lines()]
    assert len(set(styles)) == len(maps)


@pytest.mark.parametrize("words", [LONG, ["international"] * 12, ["a", "b"], ["word"] * 100])
def test_words_do_not_overlap(words):
    ax = plot.density_over_text(words, MIXTURE)
    ax.figure.canvas.draw()
    labels = ax.get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    straight = labels[0].get_rotation() == 0
    assert not straight or all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert straight == (words == ["a", "b"])


def test_the_ends_of_a_lattice_do_not_overlap_its_words():
    answer = Answer(
        (Hypothesis((0, 1), 0.6, -0.7, True), Hypothesis((0, 2, 3), 0.4, -0.9, False)), 0.0
    )
    texts = drawn_texts(plot.lattice(answer, LONG))
    words = [box for text, box in texts if text.get_text() in LONG]
    ends = [box for text, box in texts if text.get_text()[0] in "■…"]
    assert len(ends) == 2
    assert not any(end.overlaps(word) for end in ends for word in words)


@pytest.mark.parametrize(
    ("density", "alpha"),
    [(Normal(0.5, 0.1), 1.0), (MIXTURE, 2.0), (BetaGaussian(PLACES[:1], AROUND[:1, :1], 1.5), 1.5)],
)
def test_a_density_has_the_colour_of_its_own_alpha(density, alpha):
    (line,) = plot.density_over_text(["a", "b"], density).get_lines()
    assert tuple(line.get_color()) == tuple(alpha_colour(alpha))


ROWS = {
    "a list": [1.0, 0.5],
    "an array": np.array([1.0, 0.5]),
    "a tensor": torch.tensor([1.0, 0.5], requires_grad=True),
    "half precision": torch.tensor([1.0, 0.5]).bfloat16(),
    "whole numbers": torch.tensor([1, 2]),
}
OF_SEQUENCES = {
    "alpha_curves": plot.alpha_curves,
    "alpha_bars": lambda row: plot.alpha_bars(row, row),
    "alpha_sweep": lambda row: plot.alpha_sweep(row, row),
    "weights_over_text": lambda row: plot.weights_over_text(np.array(["a", "b"]), row),
}


@pytest.mark.parametrize("name", OF_SEQUENCES)
def test_sequences_of_numbers_may_be_lists_arrays_or_tensors(name):
    for row in ROWS.values():
        OF_SEQUENCES[name](row)
    for wrong in (None, 2.0, [], "ab", [[1.0, 0.5]], [1.0, float("nan")], ["a", "b"]):
        with pytest.raises(fenchel.FenchelError, match="must be a non-empty sequence of numbers"):
            OF_SEQUENCES[name](wrong)


def test_images_may_be_lists_arrays_or_tensors():
    image = torch.rand(10, 12, requires_grad=True)
    plain = image.detach()
    for form in (image, plain.numpy(), plain.tolist(), plain.bfloat16(), plain > 0.5):
        plot.ellipse_over_image(form, ELLIPSE)
    with pytest.raises(fenchel.FenchelError, match=r"got Tensor of shape \(3, 10, 12\) \(channels"):
        plot.ellipse_over_image(plain.expand(3, 10, 12), ELLIPSE)


INVALID = {
    "maps must be a non-empty dictionary": lambda: plot.curves([fenchel.softmax]),
    "dictionary from names to functions of scores, got {}": lambda: plot.weights_over_text(maps={}),
    "a map must return one weight per score": lambda: plot.curves({"sum": lambda x: x.sum(-1)}),
    "reach must be above 0": lambda: plot.curves(MAPS, reach=0),
    "points must be a whole number": lambda: plot.simplex_surface(fenchel.softmax, points=1),
    "words must contain at least one word": lambda: plot.density_over_text([], MIXTURE),
    "density must be a torch.distributions.Distribution or a Mixture": lambda: (
        plot.density_over_text(["a"], None)
    ),
    r"image must be numbers of shape \(rows, columns\)": lambda: plot.ellipse_over_image(
        None, ELLIPSE
    ),
    "density must be a MultivariateNormal, a BetaGaussian or a mixture": lambda: (
        plot.ellipse_over_image(torch.rand(3, 3), Independent(Normal(PLACES, PLACES), 1))
    ),
    "lattice must be a Lattice or an Answer, got NoneType": lambda: plot.lattice(None, ["a"]),
    "completion must have at least one step": lambda: plot.autocompletion(Completion(()), ["a"]),
    "size must be a whole number": lambda: plot.regions(size=0),
    "strength must be": lambda: plot.regions(strength="much"),
}


@pytest.mark.parametrize("message", INVALID)
def test_invalid_arguments_are_rejected(message):
    with pytest.raises(fenchel.FenchelError, match=message):
        INVALID[message]()


@pytest.mark.parametrize("draw", [plot.alpha_curves, plot.alpha_bars, plot.losses])
def test_given_axes_are_drawn_on_and_returned(draw):
    figure = Figure()
    ax = figure.subplots()
    assert draw(ax=ax) is ax
    assert draw().figure is not figure
