"""The pictures of a report say what the numbers say, and nothing that they do not."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as xml
from itertools import pairwise

import pytest

from fenchel import FenchelError
from fenchel.analysis.attention_map import attention_map
from fenchel.analysis.lattice_picture import lattice_picture
from fenchel.analysis.line_chart import line_chart, ticks
from fenchel.analysis.markup import Markup, element, join
from fenchel.analysis.tables import table
from fenchel.search import Answer, Hypothesis, Lattice


def texts(picture: str) -> list[str]:
    return [node.text or "" for node in xml.fromstring(picture).iter("text")]


def titles(picture: str, tag: str) -> list[str]:
    return [
        title.text or ""
        for node in xml.fromstring(picture).iter(tag)
        for title in node.iter("title")
    ]


def test_an_exact_zero_draws_nothing_and_any_other_weight_is_seen():
    drawn = attention_map([[0.999, 1e-6, 0.0], [0.0, 0.0, 1.0]], ["N;PL", "a", " "], ["a", "</s>"])
    cells = list(xml.fromstring(drawn).iter("rect"))
    assert len(cells) == 3
    assert all(0.1 < float(cell.attrib["opacity"]) <= 1 for cell in cells)
    assert titles(drawn, "rect") == ["a ← N;PL  0.999", "a ← a  1e-06", "</s> ←    1"]
    assert "3 of 6 weights are not zero" in titles(drawn, "svg")[0]
    assert "␣" in texts(drawn)


def test_a_map_of_the_wrong_shape_is_refused():
    with pytest.raises(FenchelError, match="2 rows of 3"):
        attention_map([[1.0]], ["a", "b", "c"], ["a", "b"])


def lattice_of(*ways: tuple[str, float], finished: bool = True) -> Lattice:
    """The lattice of words and their probabilities; a token is the number of its letter."""
    known = [
        Hypothesis(tuple(map(ord, word)), mass, math.log(mass), finished) for word, mass in ways
    ]
    return Lattice.of(Answer(tuple(known), 0.0))


def test_a_lattice_writes_shared_symbols_once_and_every_answer_with_its_probability():
    drawn = lattice_picture(lattice_of(("drawn", 0.6), ("drawed", 0.3), ("draw", 0.1)), chr)
    assert texts(drawn) == ["draw", "n", "■ 60.0 %", "ed", "■ 30.0 %", "■ 10.0 %"]
    shares = [float(title.split()[0]) for title in titles(drawn, "path")]
    assert shares == pytest.approx([60, 30, 10])


def test_a_lattice_of_one_answer_has_no_branch():
    drawn = lattice_picture(lattice_of(("ab", 1.0)), chr)
    assert texts(drawn) == ["ab", "■ 100 %"]
    assert "<path" not in drawn


def test_a_space_is_seen_and_an_unfinished_answer_is_marked():
    drawn = lattice_picture(lattice_of(("a b", 0.5), finished=False), chr)
    assert texts(drawn) == ["a␣b", "… 50.0 %"]


def test_a_chart_leaves_out_what_is_not_finite_and_describes_itself():
    drawn = line_chart(
        {"train": [(0, 3.0), (1, math.nan), (2, 1.0)], "dev": [(2, 2.0)]}, "epoch", "loss"
    )
    root = xml.fromstring(drawn)
    points = next(root.iter("polyline")).attrib["points"].split()
    assert len(points) == 2
    assert len(list(root.iter("circle"))) == 1
    assert titles(drawn, "svg")[0] == "loss by epoch: train from 3 to 1; dev from 2 to 2"


def test_a_chart_without_points_is_refused():
    with pytest.raises(FenchelError, match="needs points"):
        line_chart({"empty": []}, "x", "y")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.013), (-5, 1234), (2, 2), (1e-6, 3e-6)])
def test_ticks_are_round_few_and_cover(low, high):
    found = ticks(low, high)
    assert found[0] <= low + 1e-12
    assert found[-1] >= high - 1e-12
    assert 2 <= len(found) <= 12
    steps = {round((b - a) / (found[1] - found[0]), 6) for a, b in pairwise(found)}
    assert steps == {1.0}


def test_text_is_escaped_and_markup_is_not():
    assert element("p", "<b>", Markup("<i>x</i>"), title='"') == (
        '<p title="&quot;">&lt;b&gt;<i>x</i></p>'
    )
    assert join("a&b", None) == "a&amp;b"


def test_a_table_sets_numbers_apart_and_shows_missing_values():
    drawn = table("scores <1>", ["model", "accuracy", "note"], [["softmax", 0.81234, None]])
    assert "scores &lt;1&gt;" in drawn
    assert re.findall(r"<td[^>]*>(.*?)</td>", drawn) == ["0.8123", "–"]
    assert 'class="number"' in drawn
