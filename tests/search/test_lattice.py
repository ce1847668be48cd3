"""A lattice is the prefix tree of an answer, with conditional probabilities at its edges."""

from __future__ import annotations

import math

import pytest
import torch

from fenchel.search import Answer, Hypothesis, Lattice, PrefixStepper, beam_search, support
from tests.search.models import EOS, RandomModel


def answer_of(words, *, finished=True, dropped=0.0):
    ways = sorted(words.items(), key=lambda pair: -pair[1])
    hypotheses = [
        Hypothesis.of(tuple(map(ord, word)), math.log(p), finished=finished) for word, p in ways
    ]
    return Answer(tuple(hypotheses), dropped)


@pytest.mark.parametrize("seed", range(8))
def test_edges_of_a_complete_answer_have_the_probabilities_of_the_model(seed):
    model = RandomModel(seed)
    (answer,) = support(PrefixStepper([model]), max_length=6)
    lattice = Lattice.of(answer)
    assert lattice.complete
    for node, edges in lattice.following().items():
        probabilities = model(lattice.nodes[node])
        if not edges:
            continue
        assert len(edges) == int((probabilities > 0).sum())
        for edge in edges:
            token = EOS if edge.token is None else edge.token
            assert edge.probability == pytest.approx(float(probabilities[token]))
        assert [e.mass for e in edges] == sorted((e.mass for e in edges), reverse=True)


def test_every_sequence_ends_in_its_own_node():
    words = {"drawn": 0.6, "drawed": 0.3, "draw": 0.1}
    lattice = Lattice.of(answer_of(words))
    ends = {lattice.nodes[e.target]: e.mass for e in lattice.edges if e.token is None}
    assert {"".join(map(chr, tokens)): mass for tokens, mass in ends.items()} == pytest.approx(
        words
    )
    assert len(lattice.edges) == len(lattice.nodes) - 1


def test_the_text_shows_shared_prefixes_once():
    words = {"drawn": 0.664, "drawed": 0.322, "draw": 0.0139, "drawnen": 0.0001}
    assert Lattice.of(answer_of(words)).text(chr).splitlines() == [
        "draw ─┬─ 66.4 % ─ n ─┬─ >99.9 % ■ 66.4 %",
        "      │              └─  <0.1 % ─ en ■ <0.1 %",
        "      ├─ 32.2 % ─ ed ■ 32.2 %",
        "      └─  1.4 % ■ 1.4 %",
    ]


def test_the_text_of_one_sequence_is_one_line():
    assert Lattice.of(answer_of({"drawn": 1.0})).text(chr) == "drawn ■ 100 %"
    assert Lattice.of(answer_of({"": 1.0})).text(chr) == "■ 100 %"


def test_sequences_cut_at_the_length_limit_are_marked():
    cut = Lattice.of(answer_of({"ab": 0.5, "ac": 0.25}, finished=False, dropped=0.3))
    assert cut.text(chr).splitlines() == [
        "a ─┬─ 66.7 % ─ b … 50.0 %",
        "   └─ 33.3 % ─ c … 25.0 %",
        f"({cut.caption})",
    ]
    assert not cut.complete
    assert cut.dropped == 0.3


def test_an_incomplete_lattice_says_that_its_percentages_are_shares_of_the_answers_found():
    row = torch.tensor([0, 0, 0.2, 0.5, 0.2, 0.1])  # the model's probabilities of 2 (eos) to 5

    def model(prefix):
        return torch.eye(6)[EOS] if prefix else row

    caption = "(percentages at forks are shares of the answers found)"
    (some,) = beam_search(PrefixStepper([model]), width=2, max_length=3)
    *_, last = Lattice.of(some).text("··.abc").splitlines()
    assert not some.complete
    assert last == caption

    (everything,) = beam_search(PrefixStepper([model]), width=5, max_length=3)
    assert everything.complete
    assert caption not in Lattice.of(everything).text("··.abc")

    (best,) = beam_search(PrefixStepper([model]), width=1, max_length=3)
    assert not best.complete
    assert Lattice.of(best).text("··.abc") == "a ■ 50.0 %"  # no fork, no caption


def test_tokens_are_separated_and_wide_characters_aligned():
    wide = Lattice.of(answer_of({"日本語": 0.5, "日本人": 0.5}))
    first, second = wide.text(chr, separator=" ").splitlines()
    assert first == "日 本 ─┬─ 50.0 % ─ 語 ■ 50.0 %"
    assert second == "       └─ 50.0 % ─ 人 ■ 50.0 %"


def test_long_sequences_do_not_exceed_the_recursion_limit():
    lattice = Lattice.of(answer_of({"ab" * 3000: 0.5, "ab" * 2999: 0.5}))
    assert len(lattice.text(chr).splitlines()) == 2
