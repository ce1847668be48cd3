"""The simulation of documents with label proportions, and how far models are from these."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from fenchel.plot import courses_with_errors
from fenchel.recipes.reproductions import proportions
from fenchel.recipes.reproductions.config import ReproductionConfig
from fenchel.recipes.reproductions.jobs import Reporter
from fenchel.recipes.reproductions.martins2016 import FIGURE3
from fenchel.recipes.reproductions.proportions import (
    LOSSES,
    Simulation,
    SimulationJob,
    jensen_shannon,
    squared_error,
)


@pytest.mark.parametrize("mixture", ["uniform", "random"])
def test_documents_are_drawn_from_the_words_of_their_labels(mixture):
    simulation = Simulation(5, 4000, mixture, train=2000, test=0)
    counts, q = simulation.draw(0)
    assert counts.shape == q.shape == (2000, 5)
    np.testing.assert_allclose(q.sum(1), 1)
    numbers = (q > 0).sum(1)
    assert numbers.min() == 1
    poisson = np.array([np.exp(-2) * 2**n / np.prod(range(1, n + 1)) for n in range(1, 6)])
    np.testing.assert_allclose(np.bincount(numbers)[1:] / 2000, poisson / poisson.sum(), atol=0.03)
    uniform = np.isclose(q.max(1), 1 / numbers)
    assert uniform.all() == (mixture == "uniform")
    assert counts.sum(1).mean() == pytest.approx(4000, abs=6)
    # Words given labels: least squares finds the same from documents with one label and with several.
    rates = counts / counts.sum(1, keepdims=True)
    single = numbers == 1
    fitted = [np.linalg.lstsq(q[rows], rates[rows])[0] for rows in (single, ~single)]
    np.testing.assert_allclose(*fitted, atol=0.02)


def test_draws_depend_on_the_seed_alone():
    simulation = Simulation(4, 50, "random", train=20, test=10)
    for one, other in zip(simulation.draw(3), simulation.draw(3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(simulation.draw(3)[0], simulation.draw(4)[0])


def test_the_errors_are_those_of_scipy():
    rng = np.random.default_rng(0)
    q, p = np.maximum(rng.dirichlet(np.ones(4), size=(2, 10)) - 0.1, 0)
    q, p = q / q.sum(1, keepdims=True), p / p.sum(1, keepdims=True)
    expected = np.mean([jensenshannon(a, b) ** 2 for a, b in zip(q, p, strict=True)])
    assert jensen_shannon(q, p) == pytest.approx(expected)
    assert squared_error(q, p) == pytest.approx(np.mean(np.linalg.norm(q - p, axis=1) ** 2))
    assert jensen_shannon(q, q) == pytest.approx(0)


def test_a_job_measures_every_loss_and_draws_what_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(proportions, "PENALTIES", (1e-3, 1e-1))
    config = ReproductionConfig(results=tmp_path, seeds=2, quick=True)
    messages = []
    job = SimulationJob.of(FIGURE3, FIGURE3.experiments[:1], config)
    found = job(Reporter(messages.append))
    assert [each.name for each in found] == list(FIGURE3.row_names[: 2 * len(LOSSES)])
    assert all(len(each.runs) == 2 for each in found)
    assert all(each.ours == pytest.approx(np.mean(each.runs), abs=1e-6) for each in found)
    assert messages == ["2016-martins/figure3: 10 labels, uniform, 200 words"]
    assert not list(tmp_path.iterdir()), "a test draws nothing"


def test_the_picture_has_a_panel_for_each_title():
    points = [(1.0, [0.2, 0.3]), (2.0, [0.1])]
    figure = courses_with_errors({"a": {"softmax": points}, "b": {"sparsemax": points}}, "words")
    assert [ax.get_title() for ax in figure.axes] == ["a", "b"]
