"""Which examples a report shows, and how they are drawn."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from fenchel.models.seq2seq import Seq2SeqConfig
from fenchel.recipes import make_recipe
from fenchel.report import Columns, Figure
from fenchel.search import Answer, Hypothesis
from fenchel.tasks.sequences import Seq2SeqTask
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.report import (
    LONGEST,
    choose,
    prediction_block,
    training_charts,
)
from fenchel.training import Run

CODEC = Codec.fit([Example("ab", "ab", ("V",)), Example("ba", "ba", ("V",))])
RIGHT = Example("ab", "a")


def answer(*texts: str, dropped: float = 0.0) -> Answer:
    share = (1 - dropped) / len(texts)
    ways = [CODEC.encode_target(Example("", text))[:-1] for text in texts]
    return Answer(tuple(Hypothesis(tuple(way), share, -1.0, True) for way in ways), dropped)


def test_every_kind_of_example_is_shown_in_turns():
    clear, wrong, several = answer("a"), answer("b"), answer("a", "b")
    answers = [clear, clear, clear, wrong, wrong, several]
    examples = [RIGHT] * len(answers)
    assert choose(examples, answers, CODEC, 3) == [0, 3, 5]
    assert choose(examples, answers, CODEC, 4) == [0, 3, 4, 5]
    assert choose(examples, answers, CODEC, 99) == [0, 1, 2, 3, 4, 5]
    assert choose(examples, answers, CODEC, 0) == []


def test_every_language_has_an_example_if_they_are_enough():
    clear, wrong = answer("a"), answer("b")
    examples = [Example("ab", "a", group=group) for group in ("da", "de", "en") for _ in range(4)]
    answers = [wrong, clear] * 6
    groups = [examples[place].group for place in choose(examples, answers, CODEC, 3)]
    assert groups == ["da", "de", "en"]
    assert choose(examples, answers, CODEC, 99) == list(range(12))


def test_long_sources_are_not_drawn():
    long = Example("a" * (LONGEST + 1), "a")
    assert choose([long, RIGHT], [answer("a")] * 2, CODEC, 5) == [1]


@pytest.fixture
def run(tmp_path) -> Run:
    """A run with a model that is not trained."""
    model = Seq2SeqConfig(4, 4, embedding_size=4, hidden_size=4)
    task = Seq2SeqTask(model=model).sized(CODEC)
    run = Run(tmp_path, replace(make_recipe("inflection"), task=task), CODEC)
    vars(run)["model"] = task.build_model().eval()
    return run


def test_long_examples_are_shown_without_a_map_if_all_are_long(run):
    long = Example("a" * (LONGEST + 1), "a")
    assert choose([long, long], [answer("a")] * 2, CODEC, 5) == [0, 1]
    for example, pictures in ((long, 1), (RIGHT, 2)):
        (columns,) = prediction_block(run, example, answer("a")).blocks
        assert isinstance(columns, Columns)
        assert len(columns.blocks) == pictures


def test_attention_is_drawn_for_every_symbol_and_for_the_end(run):
    (columns,) = prediction_block(run, Example("ab", "ba", ("V",)), answer("ba")).blocks
    assert isinstance(columns, Columns)
    _, attention = columns.blocks
    assert isinstance(attention, Figure)
    cells = re.findall(r"<title>(\S+) ← (\S+) ", unescape(attention.svg))
    assert cells == [(written, read) for written in ("b", "a", "end") for read in ("<V>", "a", "b")]


def test_a_prediction_has_the_input_the_answer_and_the_target(run):
    block = prediction_block(run, Example("ab", "ba", ("V",)), answer("b", "a"))
    assert (block.source, block.answer, block.expected) == ("ab V", "b", "ba")
    assert prediction_block(run, Example("ab"), answer("a")).expected is None


def test_the_log_of_a_run_becomes_charts():
    log = {"loss": [(1, 2.5), (2, 1.5)], "train_loss": [(2, 1.25)], "exact": [(1, 0.1)]}
    losses, accuracies, supports = training_charts(log)
    assert losses.series == {"training": [(2, 1.25)], "validation": [(1, 2.5), (2, 1.5)]}
    assert accuracies.series == {"sequences": [(1, 0.1)]}
    assert supports.series == {}
