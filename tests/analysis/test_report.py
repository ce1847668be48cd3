"""The report is one page that needs nothing else, whatever the texts in it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from fenchel.analysis.report import Chart, Prediction, Report, Section, Table, page
from fenchel.search import Answer, Hypothesis, Lattice

VOID = {"meta"}
HOSTILE = "<script>alert('x')</script>"
WAYS = (Hypothesis((0, 1), 0.7, -0.36, True), Hypothesis((0, 2), 0.3, -1.2, True))
LATTICE = Lattice.of(Answer(WAYS, 0.0))


class Balanced(HTMLParser):
    """Fails when a tag is closed that was not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def whole() -> Report:
    prediction = Prediction(
        source=HOSTILE,
        target="drawn",
        best="drawn",
        lattice=LATTICE,
        certificate="all answers of non-zero probability",
        symbols=["d", HOSTILE, "x"],
        source_symbols=["V", "d"],
        target_symbols=["d", "</s>"],
        attention=[[1.0, 0.0], [0.5, 0.5]],
    )
    return Report(
        title=HOSTILE,
        summary="two models",
        sections=[
            Section("Metrics", tables=[Table("scores", ["set", "accuracy"], [["test", 0.5]])]),
            Section("Training", charts=[Chart("loss", "epoch", "loss", {"dev": [(1, 1.0)]})]),
            Section("Nothing to say", charts=[Chart("loss", "epoch", "loss", {})][:0]),
            Section("Examples", predictions=[prediction]),
        ],
        settings={"model.hidden_size": "300"},
    )


def test_a_page_is_well_formed_self_contained_and_escapes_its_texts():
    text = page(whole())
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert "script" not in parser.seen
    assert not re.search(r"(src|href)=|url\(|@import|https?:", text)
    assert {"h1", "table", "svg", "details", "figure"} <= parser.seen


def test_a_page_leaves_out_empty_sections_and_reads_in_the_dark():
    text = page(whole())
    assert "Nothing to say" not in text
    assert "prefers-color-scheme:dark" in text
    assert 'lang="en"' in text


def test_a_text_from_right_to_left_does_not_turn_the_words_around_it():
    hebrew = replace(whole().sections[-1].predictions[0], source="שלום", best="עולם", target="אור")
    text = page(Report("A run", "", [Section("Examples", predictions=[hebrew])]))
    assert "<bdi>שלום</bdi> → <bdi>עולם</bdi>" in text
    assert "expected <bdi>אור</bdi>" in text


def test_a_picture_wider_than_the_page_scrolls_by_itself():
    assert ".side>*{max-width:100%}" in page(whole())


def test_a_prediction_is_judged_only_where_the_truth_is_known():
    for target, verdict in (("a", ">right<"), ("b", "expected <bdi>b</bdi>"), (None, None)):
        section = Section("x", predictions=[Prediction("s", target, "a", LATTICE, "", "abc")])
        text = page(Report("t", "s", [section]))
        if verdict is None:
            assert "expected" not in text
            assert ">right<" not in text
        else:
            assert verdict in text
