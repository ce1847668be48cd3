"""A report is one page that loads nothing else, whatever its texts contain."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from fenchel import FenchelError, __version__
from fenchel.report import (
    Block,
    Chart,
    Columns,
    Figure,
    HighlightedText,
    Prediction,
    Report,
    Section,
    Table,
    attention_map,
    lattice_picture,
    render,
)
from fenchel.report.rendering import format_column, render_block
from fenchel.search import Answer, Hypothesis, Lattice

VOID = {"meta", "input"}
HOSTILE = "<script>alert('x')</script>\""
WAYS = (Hypothesis((0, 1), 0.7, -0.36, True), Hypothesis((0, 2), 0.3, -1.2, True))
LATTICE = Lattice.of(Answer(WAYS, 0.0))


class Balanced(HTMLParser):
    """Fails when a tag is closed that was not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def whole() -> Report:
    """A report with every kind of block, and hostile text wherever there is text."""
    attention = attention_map([[1.0, 0.0], [0.5, 0.5]], ["V", HOSTILE], [HOSTILE, "</s>"], HOSTILE)
    lattice = lattice_picture(LATTICE, ["d", HOSTILE, "x"], HOSTILE, HOSTILE)
    return Report(
        title=HOSTILE,
        summary=HOSTILE,
        command=HOSTILE,
        data=HOSTILE,
        sections=[
            Section("Metrics", HOSTILE, [Table(HOSTILE, [HOSTILE, "accuracy"], [[HOSTILE, 0.5]])]),
            Section("Training", blocks=[Chart(HOSTILE, HOSTILE, HOSTILE, {HOSTILE: [(1, 1.0)]})]),
            Section("Nothing to say", blocks=[Columns([Chart("loss", "epoch", "loss", {})])]),
            Section(
                HOSTILE,
                blocks=[
                    Prediction(HOSTILE, HOSTILE, "drawn", [Columns([lattice, attention])]),
                    Prediction(HOSTILE, HOSTILE, HOSTILE, certified=False),
                    HighlightedText([HOSTILE, "b"], [0.5, 0.0], HOSTILE),
                ],
            ),
        ],
        settings={HOSTILE: HOSTILE},
    )


def page_of(*blocks: Block) -> str:
    return render(Report("A run", "A finding.", [Section("Section", blocks=blocks)]))


def test_a_page_is_well_formed_self_contained_and_escapes_its_texts():
    text = render(whole())
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert "script" not in parser.seen
    assert "alert" in text
    assert not any(name.startswith("on") for name in parser.attributes)
    assert not re.search(r"src=|href=(?!\"#)|url\(|@import|https?:", text)
    assert "default-src 'none'" in text
    assert {
        "h1",
        "nav",
        "table",
        "svg",
        "details",
        "figure",
        "article",
        "mark",
        "input",
    } <= parser.seen


def test_a_page_leaves_out_empty_sections_and_follows_the_dark_scheme():
    text = render(whole())
    assert "Nothing to say" not in text
    assert "prefers-color-scheme: dark" in text
    assert 'lang="en"' in text


def test_a_page_opens_with_its_finding_and_then_where_it_comes_from():
    report = Report(
        "A run", "It works.", [], "fenchel report runs/a", "test.tsv", date=date(2024, 5, 6)
    )
    text = re.sub(r"<[^>]*>", " ", render(report).partition("</head>")[2])
    wanted = [
        "A run",
        "It works.",
        "2024-05-06",
        f"fenchel {__version__}",
        "test.tsv",
        "fenchel report",
    ]
    places = [text.index(part) for part in wanted]
    assert places == sorted(places)
    bare = render(replace(report, command="", data=""))
    assert "Command" not in bare
    assert ">Data<" not in bare


@pytest.mark.parametrize(("count", "listed"), [(1, False), (2, False), (3, True)])
def test_a_table_of_contents_links_to_the_sections_if_there_are_more_than_two(count, listed):
    sections = [Section("Nothing"), *(Section(f"Part {k}", "text") for k in range(count))]
    text = render(Report("A run", "It works.", sections))
    assert ("<nav" in text) == listed
    links, targets = re.findall(r'href="#(.*?)"', text), re.findall(r'section id="(.*?)"', text)
    assert len(set(targets)) == count
    assert links == (targets if listed else [])


def test_right_to_left_text_does_not_reorder_the_words_around_it():
    text = page_of(Prediction("שלום", "עולם", "אור"))
    assert "<bdi>שלום</bdi> → <bdi>עולם</bdi>" in text
    assert "expected <bdi>אור</bdi>" in text


def test_pictures_shrink_with_the_page_except_those_that_scroll_in_their_own_box():
    text = render(whole())
    assert "svg { height: auto; max-width: 100%; }" in text
    assert "svg.scrolls { max-width: none; }" in text
    assert "overflow-x: auto;" in text
    assert ".columns > * { max-width: 100%; }" in text
    pictures = re.findall(r"(<div class=\"box\"[^>]*>)?(<svg [^>]*>)", text)
    assert len(pictures) == 3
    assert all("viewBox" in picture for _, picture in pictures)
    assert all(box for box, picture in pictures if "scrolls" in picture)


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [
        ("a", '<p class="right">right</p>'),
        ("b", '<p class="wrong">wrong, expected <bdi>b</bdi></p>'),
        (None, None),
    ],
)
def test_a_prediction_is_judged_only_if_the_expected_answer_is_known(expected, verdict):
    text = page_of(Prediction("s", "a", expected))
    assert text.count('class="right"') + text.count('class="wrong"') == (verdict is not None)
    assert verdict is None or verdict in text


def test_wrong_and_unproven_answers_can_be_shown_alone():
    answers = [
        Prediction("a", "x", "x", certified=True),
        Columns([Prediction("b", "x", "y", certified=True), Prediction("c", "x", certified=False)]),
        Prediction("d", "x", "y", certified=False),
        Prediction("e", "x"),
    ]
    text = page_of(*answers)
    assert re.findall(r'class="only-(.*?)"> only .* \((.*)\)<', text) == [
        ("wrong", "2 of 5"),
        ("unproven", "2 of 5"),
    ]
    articles = {part[part.index("<bdi>") + 5]: part for part in text.split("<article>")[1:]}
    for kind, sources in (("wrong", "bd"), ("unproven", "cd")):
        assert [each for each in articles if f'<p class="{kind}">' in articles[each]] == [*sources]
        assert f":has(.only-{kind}:checked) article:not(:has(> .{kind}))" in text


@pytest.mark.parametrize("answers", [["x"], ["y"], ["x", "x"], ["y", "y"]])
def test_answers_that_are_all_right_or_all_wrong_have_no_filter(answers):
    text = page_of(*(Prediction("s", answer, "x", certified=True) for answer in answers))
    assert "<input" not in text


def test_an_empty_answer_is_named():
    assert "<bdi>s</bdi> → <em>empty</em>" in page_of(Prediction("s", ""))


def test_the_markup_of_a_figure_is_kept_and_plain_text_is_escaped():
    assert "<svg><g></g></svg>" in page_of(Figure(Markup("<svg><g></g></svg>"), "mine"))
    assert "&lt;svg&gt;" in page_of(Figure("<svg>", "mine"))  # pyright: ignore[reportArgumentType]


def test_words_are_shaded_by_weight_and_exact_zeros_are_dim():
    text = render_block(HighlightedText(["a", "b", "c"], [0.2, 1e-6, 0.0], "Attention"))
    marks = re.findall(r'<mark style="--shade: (.*?)" title="(.*?)">(.*?)</mark>', text)
    assert marks == [("1.000", "0.2", "a"), ("0.000", "1e-06", "b")]
    assert '<span class="zero" title="0">c</span>' in text
    assert "exactly zero" in text
    assert "exactly zero" not in render_block(HighlightedText(["a"], [0.2], "Attention"))


WORDS, WEIGHTS = ["a", "b", "c", "d", "e"], [0.3, 0.1, 0.1, 0.0, 0.1]


def test_the_words_of_a_segment_share_a_bar():
    text = render_block(HighlightedText(WORDS, WEIGHTS, "Attention", "segments"))
    marks = re.findall(
        r'<mark class="segment" style="--shade: (.*?)" title=".*?">(.*?)</mark>', text
    )
    assert marks == [("1.000", "a"), ("0.333", "b c"), ("0.333", "e")]
    assert '<span class="zero" title="0">d</span>' in text


def test_the_words_of_a_cluster_share_a_colour():
    text = render_block(HighlightedText(WORDS, WEIGHTS, "Attention", "clusters"))
    marks = re.findall(r'<mark class="cluster (s\d)" .*?>(.*?)</mark>', text)
    assert marks == [("s0", "a"), ("s1", "b"), ("s1", "c"), ("s1", "e")]
    with pytest.raises(FenchelError, match=r"grouping must be one of .*, got 'colours'"):
        HighlightedText(WORDS, WEIGHTS, "Attention", "colours")


@pytest.mark.parametrize("weights", [[0.5], [0.5, -0.1], [0.5, float("nan")]])
def test_weights_that_do_not_fit_the_words_are_refused(weights):
    with pytest.raises(FenchelError, match="must"):
        HighlightedText(["a", "b"], weights, "Attention")


def test_a_table_sets_numbers_apart_and_shows_missing_values():
    columns = ["model", "accuracy", "note"]
    drawn = render_block(
        Table("scores <1>", columns, [["softmax", 0.81234, None], ["x", 1.0, "a"]])
    )
    assert "scores &lt;1&gt;" in drawn
    assert re.findall(r"<td[^>]*>(.*?)</td>", drawn) == ["0.812", "–", "1.000", "a"]
    assert re.findall(r'class="number">(.*?)<', drawn) == ["accuracy", "0.812", "1.000"]


def test_a_long_text_does_not_push_the_other_columns_off_the_page():
    drawn = render_block(Table("scores", ["name", "value"], [["a", "x" * 61], ["b", "short"]]))
    assert f'<td class="long">{"x" * 61}</td>' in drawn
    assert "<td>short</td>" in drawn


def test_a_table_with_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(FenchelError, match="must have 2 cells, got 1"):
        Table("scores", ["model", "accuracy"], [["softmax", 0.5], ["entmax"]])


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([50.0, 25.0, 0.0], ["50", "25", "0"]),
        ([81.234, 2.0, 7], ["81.23", "2.00", "7"]),
        ([95.0, 0.0012], ["95.0000", "0.0012"]),
        ([95.0, 1e-6], ["9.50e+01", "1.00e-06"]),
        ([1234567.8, 1.5], ["1234568", "2"]),
        ([0.5, float("nan"), None, True], ["0.5", "nan", "–", "yes"]),
        (["word", None], ["word", "–"]),
        ([], []),
    ],
)
def test_floats_of_a_column_have_one_precision(values, texts):
    assert format_column(values) == texts
