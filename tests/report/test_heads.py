"""The data of a view of heads: what is refused, what is embedded, and what needs no script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fenchel import FenchelError
from fenchel.report import (
    Columns,
    HeadEntry,
    HeadsView,
    ModelHeads,
    Report,
    Section,
    SentenceAttention,
    Trajectories,
    render,
    sparse_rows,
)
from fenchel.report.heads_rendering import UNITS, encode, heads_data
from tests.report.example_heads import example_view

HEAD = HeadEntry("encoder", 1, 1, density=0.5, alpha=1.5)
SENTENCE = SentenceAttention(["a", "b"], [], {HEAD.key: [{0: 1.0}, {0: 0.5, 1: 0.5}]})
MODEL = ModelHeads("mine", [HEAD], [SENTENCE])


def page_of(view: HeadsView) -> str:
    return render(Report("A run", "A finding.", [Section("Heads", blocks=[Columns([view])])]))


def embedded(text: str) -> Any:
    found = re.findall(r'<script type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    assert len(found) == 1
    return json.loads(found[0])


def decode(numbers: list[int], rows: int, count: int) -> list[dict[int, float]]:
    decoded: list[dict[int, float]] = [{} for _ in range(rows)]
    place = 0
    for number in numbers:
        if number < 0:
            place -= number
        else:
            decoded[place // count][place % count] = number / UNITS
            place += 1
    return decoded


weights = st.one_of(st.just(0.0), st.floats(1e-9, 1.0))


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(weights, min_size=n, max_size=n))))
def test_exactly_the_weights_that_are_not_zero_are_embedded_with_four_decimals(matrix):
    rows, count = sparse_rows(matrix), len(matrix[0]) if matrix else 1
    found = decode(encode(rows, count), len(matrix), count)
    assert [set(row) for row in found] == [set(row) for row in rows]
    for row, exact in zip(found, rows, strict=True):
        assert row == pytest.approx(exact, abs=0.51 / UNITS)


def test_zeros_that_are_given_are_left_out():
    assert encode([{0: 0.0, 1: 1.0}, {1: 0.0}], 2) == [-1, 10000]


def test_every_kind_of_attention_has_its_own_queries_and_keys():
    sentence = SentenceAttention(["a", "b", "c"], ["d"], {("context", 1, 1): [{2: 1.0}]})
    assert sentence.tokens("encoder") == (["a", "b", "c"], ["a", "b", "c"])
    assert sentence.tokens("context") == (["d"], ["a", "b", "c"])
    assert sentence.tokens("decoder") == (["d"], ["d"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(HEAD, kind="cross"), "unknown kind of attention 'cross', must be one of"),
        (lambda: replace(HEAD, density=1.5), "density must be between 0 and 1, got 1.5"),
        (lambda: replace(HEAD, density=float("nan")), "density must be between 0 and 1, got nan"),
        (lambda: replace(HEAD, alpha=0.0), "alpha must be positive and finite, got 0"),
        (lambda: replace(HEAD, roles={"merging": -0.1}), "role 'merging' must be between 0 and 1"),
        (
            lambda: replace(SENTENCE, weights={HEAD.key: [{}]}),
            "encoder layer 1, head 1 must have one row per query, got 1 rows and 2 tokens",
        ),
        (
            lambda: replace(SENTENCE, weights={HEAD.key: [{}, {2: 1.0}]}),
            "keys of encoder layer 1, head 1 must be below 2, the number of tokens, got 2",
        ),
        (
            lambda: replace(SENTENCE, weights={HEAD.key: [{}, {1: -0.5}]}),
            "weights of encoder layer 1, head 1 must be between 0 and 1, got -0.5",
        ),
        (lambda: replace(SENTENCE, weights={("a", 1, 1): []}), "unknown kind of attention 'a'"),
        (lambda: replace(MODEL, heads=[HEAD, HEAD]), "heads must be unique, got encoder layer 1"),
        (lambda: replace(MODEL, heads=[]), "sentences must belong to heads of the model 'mine'"),
        (
            lambda: replace(
                MODEL, trajectories=Trajectories("step", [1], {("context", 1, 1): [1]})
            ),
            "trajectories must belong to heads .* got context layer 1, head 1",
        ),
        (lambda: Trajectories("step", [1, 2], {HEAD.key: [1.5]}), "must have 2 values, got 1"),
        (lambda: Trajectories("step", [1], {HEAD.key: [float("inf")]}), "must be finite"),
        (lambda: HeadsView([]), "models must be one or two, got 0"),
        (lambda: HeadsView([MODEL] * 3), "models must be one or two, got 3"),
        (lambda: HeadsView([MODEL, MODEL]), "models must have different names, got 'mine' twice"),
        (
            lambda: HeadsView([MODEL, ModelHeads("other", [HEAD])]),
            "both models must have the same sentences, got 1 and 0",
        ),
    ],
)
def test_data_that_do_not_fit_together_are_refused(make, message):
    with pytest.raises(FenchelError, match=message):
        make()


def test_a_sum_that_is_one_up_to_rounding_is_accepted():
    assert replace(HEAD, density=1 + 1e-7, roles={"previous token": 1 + 1e-7})


def test_alpha_covers_one_to_two_and_whatever_is_beyond():
    low = replace(HEAD, alpha=0.5)
    steep = Trajectories("epoch", [1, 2], {HEAD.key: [3.0, 0.5]})
    for view, ends in [
        (HeadsView([MODEL]), (1, 2)),
        (HeadsView([ModelHeads("low", [low])]), (0.5, 2)),
        (HeadsView([ModelHeads("steep", [low], trajectories=steep)]), (0.5, 3)),
    ]:
        metric = heads_data(view)["metrics"][0]
        assert (metric["name"], metric["low"], metric["high"]) == ("α", *ends)


def test_models_without_alpha_are_coloured_by_density():
    view = HeadsView([ModelHeads("softmax", [replace(HEAD, alpha=None, roles={"next": 0.5})])])
    assert [metric["name"] for metric in heads_data(view)["metrics"]] == ["density", "next"]


def test_a_view_without_heads_is_left_out_with_its_script():
    text = page_of(HeadsView([ModelHeads("none", [])]))
    assert "<script" not in text
    assert "Heads" not in text


def test_the_page_permits_its_own_script_and_no_other():
    text = page_of(HeadsView([MODEL]))
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert re.findall(r"script-src '(.*?)'", text) == [f"sha256-{digest}"]
    assert not re.search(r"\bsrc=|https?:|@import|url\(", text)
    assert not re.search(r"innerHTML = (?!\"<svg></svg>\")|insertAdjacentHTML|eval\(", scripts[0])


def test_hostile_names_and_tokens_stay_text():
    hostile = ["</script><script>alert(1)</script>", "<!--", "\x00\x1b", "a\u202eb", "\ud800", " "]
    n = len(hostile)
    rows = [{k: 1.0} for k in range(n)]
    head = replace(HEAD, roles={hostile[0]: 0.5})
    sentence = SentenceAttention(hostile, [], {HEAD.key: rows})
    text = page_of(HeadsView([ModelHeads(hostile[0], [head], [sentence])]))
    assert text.count("</script>") == 2
    assert "<!--" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\ud800-\udfff]", text)
    data = embedded(text)
    tokens = data["models"][0]["sentences"][0]["source"]
    assert tokens == [*hostile[:2], r"\x00\x1b", r"a\u202eb", r"\ud800", "␣"]
    assert data["models"][0]["name"] == hostile[0]


def test_without_javascript_there_is_a_table_of_all_heads():
    text = page_of(example_view(models=2, layers=2, heads=3, sentences=1))
    assert text.count("<caption>Heads of ") == 2
    assert text.count("self-attention, layer 2, head 3</th>") == 4
    assert "<details open>" in text
    assert "<noscript>" in text


def test_a_page_of_seventy_two_heads_and_ten_sentences_takes_a_megabyte():
    text = page_of(example_view(layers=3, heads=8, sentences=10))
    assert len(text.encode()) < 1_000_000
