"""The figures of a search show what it found."""

from __future__ import annotations

import math

import pytest
import torch

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from fenchel import plot
from fenchel.search import Answer, Hypothesis, Lattice, PrefixStepper, autocomplete

WORDS = {"drawn": 0.664, "drawed": 0.322, "draw": 0.014}


def answer(finished=True):
    hypotheses = [
        Hypothesis.of(tuple(map(ord, word)), math.log(p), finished=finished)
        for word, p in WORDS.items()
    ]
    return Answer(tuple(hypotheses), 0.0)


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_the_lattice_shows_shared_symbols_once_and_every_probability():
    ax = plot.lattice(answer(), chr, title="past participle")
    assert sorted(text for text in texts(ax) if len(text) == 1) == sorted("draw" + "n" + "ed")
    assert {"■ 66.4 %", "■ 32.2 %", "■ 1.4 %"} <= set(texts(ax))
    assert texts(ax).count("66.4 %") == texts(ax).count("32.2 %") == 1
    assert ax.get_title() == "past participle"


def test_every_sequence_has_its_own_row_and_the_best_is_the_first():
    ax = plot.lattice(Lattice.of(answer()), chr)
    rows = {text.get_text(): text.get_position()[1] for text in ax.texts if "■" in text.get_text()}
    assert sorted(rows.values()) == [0, 1, 2]
    assert rows["■ 66.4 %"] == 0
    letters = [t.get_position() for t in ax.texts if t.get_text() in "drawn"]
    assert len(letters) == 5 + 1  # and the d of "drawed"
    assert sum(y == 0 for _, y in letters) == 5
    assert len(set(letters)) == 6


def test_line_widths_grow_with_probabilities():
    ax = plot.lattice(answer(), chr)
    widths = sorted({round(line.get_linewidth(), 6) for line in ax.get_lines()})
    expected = [0.8 + 4 * p for p in (0.014, 0.322, 0.664, 1.0)]
    assert widths == pytest.approx(expected)


def test_a_sequence_cut_at_the_length_limit_ends_with_an_ellipsis():
    ax = plot.lattice(Answer((Hypothesis((97, 98), 0.5, math.log(0.5), False),), 0.5), chr)
    assert "… 50.0 %" in texts(ax)


def test_an_incomplete_lattice_has_a_caption_below_its_sequences():
    complete, incomplete = answer(), Answer(answer().hypotheses, 0.1)
    caption = "percentages at forks are shares of the answers found"
    assert caption not in texts(plot.lattice(complete, chr))
    ax = plot.lattice(incomplete, chr)
    (below,) = [text for text in ax.texts if text.get_text() == caption]
    ax.figure.canvas.draw()
    box, others = below.get_window_extent(), [t for t in ax.texts if t is not below]
    assert all(box.y1 < text.get_window_extent().y0 for text in others)
    assert ax.figure.bbox.y0 <= box.y0
    one = Answer(answer().hypotheses[:1], 0.1)
    assert caption not in texts(plot.lattice(one, chr))  # no forks


def test_the_autocompletion_shows_candidates_and_joins_certain_steps():
    rows = torch.tensor(
        [[0, 0, 0, 1.0, 0], [0, 0, 0, 0.25, 0.75], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0]]
    )
    stepper = PrefixStepper([lambda prefix: rows[min(len(prefix), 3)]])
    (completion,) = autocomplete(stepper, [(3, 4, 3)])
    ax = plot.autocompletion(completion, "··.ab")
    assert sorted(texts(ax)) == sorted("a" + "ba" + "a■")
    bold = [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"]
    assert bold == ["a", "b", "a", "■"]
    shades = [round(box.get_facecolor()[3] / 0.35, 6) for box in ax.patches]
    assert shades == [1.0, 0.75, 0.25, 1.0]  # the last two steps share a box
    (hidden,) = autocomplete(stepper, [(3, 3, 3)], candidates=1)
    assert texts(plot.autocompletion(hidden, "··.ab")) == ["a", "b", "a", "+1", "a", "■"]


@pytest.mark.parametrize(("symbol", "plain"), [("日本", "abcd"), ("e\u0301", "e")])
def test_wide_symbols_get_more_room_and_accents_none(symbol: str, plain: str):
    def widths(shown: str) -> list[float]:
        (completion,) = autocomplete(PrefixStepper([lambda prefix: torch.eye(4)[3]]), [(3,)])
        pictures = (
            plot.lattice(answer(), lambda token: shown),
            plot.autocompletion(completion, lambda token: shown),
        )
        return [ax.get_xlim()[1] for ax in pictures]

    assert widths(symbol) == widths(plain)
    assert widths(symbol) != widths(plain + "a")


def test_given_axes_are_drawn_on_and_returned():
    ax = Figure().subplots()
    assert plot.lattice(answer(), chr, ax=ax) is ax
    (completion,) = autocomplete(PrefixStepper([lambda prefix: torch.eye(4)[2]]), [()])
    assert plot.autocompletion(completion, "··.a", ax=ax) is ax
    ax.figure.canvas.draw()
