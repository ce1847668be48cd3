"""Charts show the finite points of their series; the columns of a run's log become such series."""

from __future__ import annotations

import math
import xml.etree.ElementTree as xml
from itertools import pairwise

import pytest

from fenchel import FenchelError
from fenchel.report import Chart, log_chart, read_log
from fenchel.report.charts import line_chart, ticks


def test_a_log_is_read_by_column_without_empty_cells(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,loss,train_loss,exact\n1,2.5,,0.1\n2,1.5,1.25,0.2\n", encoding="utf-8")
    log = read_log(path)
    assert log["loss"] == [(1, 2.5), (2, 1.5)]
    assert log["train_loss"] == [(2, 1.25)]
    assert read_log(tmp_path / "nothing.csv") == {}


def test_a_chart_has_the_columns_that_the_caller_names():
    log = {"loss": [(1, 2.5), (2, 1.5)], "train_loss": [(2, 1.25)], "exact": [(1, 0.1)]}
    names = {"train_loss": "training", "loss": "validation", "missing": "not there"}
    chart = log_chart(log, "Loss per symbol", "loss", names)
    assert chart.series == {"training": [(2, 1.25)], "validation": [(1, 2.5), (2, 1.5)]}
    assert (chart.caption, chart.x_title, chart.y_title) == ("Loss per symbol", "epoch", "loss")


@pytest.mark.parametrize("text", ["loss\n1\n", "epoch,loss\n1,low\n", "epoch,loss\n1,2,3\n"])
def test_a_log_that_is_no_table_of_numbers_is_refused_by_name(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FenchelError, match=r"log\.csv must be a table of numbers"):
        read_log(path)


def test_a_chart_leaves_out_what_is_not_finite_and_describes_itself():
    series = {"train": [(0, 3.0), (1, math.nan), (2, 1.0)], "dev": [(2, 2.0)], "none": []}
    drawn = line_chart(Chart("Loss", "epoch", "loss", series))
    root = xml.fromstring(drawn)
    points = next(root.iter("polyline")).attrib["points"].split()
    assert len(points) == 2
    assert [circle.attrib["class"] for circle in root.iter("circle")] == ["point", "point", "dot"]
    assert next(root.iter("title")).text == "loss by epoch: train from 3 to 1; dev from 2 to 2"


def test_the_value_of_a_point_is_shown_on_hover():
    drawn = line_chart(Chart("Loss", "epoch", "loss", {"training": [(1, 2.0), (2, 1 / 3)]}))
    shown = [next(circle.iter("title")).text for circle in xml.fromstring(drawn).iter("circle")]
    assert shown == ["training: 2 at epoch 1", "training: 0.3333 at epoch 2"]


def test_a_chart_without_points_is_refused():
    for points in ([], [(1, math.nan)]):
        with pytest.raises(FenchelError, match="at least one finite point"):
            line_chart(Chart("Empty", "x", "y", {"empty": points}))


def test_epochs_are_marked_with_whole_numbers():
    drawn = line_chart(Chart("Loss", "epoch", "", {"": [(1, 0.25), (3, 0.5)]}))
    assert [text.text for text in xml.fromstring(drawn).iter("text") if text.text][:3] == [
        "1",
        "2",
        "3",
    ]


def test_the_horizontal_axis_ends_with_the_data():
    drawn = line_chart(Chart("Loss", "step", "", {"": [(1, 0.5), (12, 0.25)]}))
    root = xml.fromstring(drawn)
    grid = next(path for path in root.iter("path") if path.attrib["class"] == "grid")
    left, right = grid.attrib["d"].split("M")[1].split()[0], grid.attrib["d"].rpartition("H")[2]
    points = [point.split(",")[0] for point in next(root.iter("polyline")).attrib["points"].split()]
    assert [float(x) for x in points] == [float(left), float(right)]
    assert [text.text for text in root.iter("text") if text.text][:6] == [
        "2",
        "4",
        "6",
        "8",
        "10",
        "12",
    ]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.013), (-5, 1234), (2, 2), (1e-6, 3e-6)])
def test_ticks_are_round_few_and_cover(low, high):
    found = ticks(low, high)
    assert found[0] <= low + 1e-12
    assert found[-1] >= high - 1e-12
    assert 2 <= len(found) <= 12
    steps = {round((b - a) / (found[1] - found[0]), 6) for a, b in pairwise(found)}
    assert steps == {1.0}
