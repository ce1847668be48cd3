"""The pictures of a report show what the numbers are, and nothing else."""

from __future__ import annotations

import math
import xml.etree.ElementTree as xml

import pytest
from markupsafe import Markup

from fenchel import FenchelError
from fenchel.report import attention_map, density_over_words, lattice_picture
from fenchel.report.svg import element
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
    weights = [[0.999, 1e-6, 0.0], [0.0, 0.0, 1.0]]
    drawn = attention_map(weights, ["N;PL", "a", " "], ["a", "</s>"]).svg
    cells = list(xml.fromstring(drawn).iter("rect"))
    assert len(cells) == 3
    assert all(0.1 < float(cell.attrib["opacity"]) <= 1 for cell in cells)
    assert titles(drawn, "rect") == ["a ← N;PL  0.999", "a ← a  1e-06", "</s> ← ␣  1"]
    assert "3 of 6 weights are not zero" in titles(drawn, "svg")[0]
    assert "␣" in texts(drawn)


def test_blank_squares_are_explained_only_if_there_are_some():
    some, none = ([[weight, 1.0]] for weight in (0.0, 1e-6))
    assert "blank squares" in attention_map(some, ["a", "b"], ["c"], "Attention").caption
    assert attention_map(none, ["a", "b"], ["c"], "Attention").caption == "Attention"


@pytest.mark.parametrize(("count", "wide"), [(4, False), (5, True)])
def test_a_target_of_more_than_twice_the_source_has_the_columns(count, wide):
    weights = [[0.0, 1 / (k + 1)] for k in range(count)]
    drawn = attention_map(weights, ["a", "b"], list("vwxyz")[:count], "Attention")
    cells = list(xml.fromstring(drawn.svg).iter("rect"))
    across, down = ({cell.attrib[name] for cell in cells} for name in ("x", "y"))
    assert (len(across), len(down)) == ((count, 1) if wide else (1, count))
    assert titles(drawn.svg, "rect")[-1] == f"{'vwxyz'[count - 1]} ← b  {1 / count:.3g}"
    assert ("one column per target symbol" in drawn.caption) == wide


@pytest.mark.parametrize("count", [1, 5])
def test_the_weights_of_a_target_symbol_are_grouped_with_its_label(count):
    weights, target = [[0.25, 0.0, 0.75]] * count, list("vwxyz")[:count]
    source = ["a"] if count == 5 else ["a", "b", "c"]
    drawn = attention_map([row[: len(source)] for row in weights], source, target).svg
    groups = [g for g in xml.fromstring(drawn).iter("g") if g.attrib.get("class") == "target"]
    assert [[text.text for text in g.iter("text")] for g in groups] == [[name] for name in target]
    assert {len(list(g.iter("rect"))) for g in groups} == {2 if len(source) == 3 else 1}


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
    drawn = lattice_picture(lattice_of(("drawn", 0.6), ("drawed", 0.3), ("draw", 0.1)), chr).svg
    assert texts(drawn) == ["draw", "n", "■ 60.0 %", "ed", "■ 30.0 %", "■ 10.0 %"]
    shares = [float(title.split()[0]) for title in titles(drawn, "path")]
    assert shares == pytest.approx([60, 30, 10])


def test_the_most_probable_answer_is_highlighted_even_where_another_branch_has_more_probability():
    drawn = lattice_picture(lattice_of(("ax", 0.3), ("ay", 0.3), ("b", 0.4)), chr).svg
    nodes = list(xml.fromstring(drawn).iter())
    chosen = [node for node in nodes if "chosen" in node.attrib.get("class", "").split()]
    assert [node.text for node in chosen if node.tag == "text"] == ["b"]
    assert [next(node.iter("title")).text for node in chosen if node.tag == "path"] == [
        "40.0 % of the probability"
    ]


def test_a_lattice_of_one_answer_has_no_branch():
    drawn = lattice_picture(lattice_of(("ab", 1.0)), chr).svg
    assert texts(drawn) == ["ab", "■ 100 %"]
    assert "<path" not in drawn


def test_a_space_is_seen_and_an_unfinished_answer_is_marked():
    drawn = lattice_picture(lattice_of(("a b", 0.5), finished=False), chr).svg
    assert texts(drawn) == ["a␣b", "… 50.0 %"]


def test_text_is_escaped_and_markup_is_not():
    assert element("p", "<b>", Markup("<i>x</i>"), title='"') == (
        '<p title="&#34;">&lt;b&gt;<i>x</i></p>'
    )


def test_coordinates_are_rounded():
    assert element("rect", x=12.0, y=3.14159, width=-0.001) == (
        '<rect x="12" y="3.14" width="0"></rect>'
    )


def test_a_density_is_drawn_over_its_words():
    words = ["superb", "<b>"] * 60
    heights = [[0.0, 0.0]] * 118 + [[30.0, 60.0], [90.0, 0.0]]
    figure = density_over_words(words, heights, "good")
    drawn = xml.fromstring(figure.svg)
    assert figure.caption == "good"
    assert texts(figure.svg) == words
    lines = list(drawn.iter("polyline"))
    assert len(lines) > 1
    points = [
        tuple(map(float, point.split(",")))
        for line in lines
        for point in line.get("points", "").split()
    ]
    assert len(points) == 240
    top, bottom = (end(y for _, y in points[-4:]) for end in (min, max))
    assert [points.index(point) for point in points if point[1] == top] == [238]
    assert bottom == points[-1][1]
    dim = [node.text for node in drawn.iter("text") if node.get("class") == "tick"]
    assert len(dim) == 118
    masses = titles(figure.svg, "g")
    assert masses[-1] == "0.375"
    with pytest.raises(FenchelError, match=r"one entry per word \(120\), got 1"):
        density_over_words(words, heights[:1], "")
