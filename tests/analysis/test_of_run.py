"""Which examples a report shows, and what it counts."""

from __future__ import annotations

import pytest

from fenchel.analysis.history import history_charts, read_log
from fenchel.analysis.of_run import LONGEST, choose, prediction_of
from fenchel.analysis.wording import SENTENCES, proof
from fenchel.data import Codec, Example
from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig
from fenchel.recipes import recipe
from fenchel.recipes.running import Trained
from fenchel.search import Answer, Hypothesis
from fenchel.training import Run
from fenchel.training.config import TrainingConfig

CODEC = Codec.fit([Example("ab", "ab"), Example("ba", "ba")])
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


def test_where_all_sources_are_long_examples_are_shown_without_a_map(tmp_path):
    long = Example("a" * (LONGEST + 1), "a")
    assert choose([long, long], [answer("a")] * 2, CODEC, 5) == [0, 1]
    config = Seq2SeqConfig(len(CODEC.source_vocabulary), len(CODEC.target_vocabulary), 4, 4)
    run = Run(tmp_path, config, TrainingConfig(), CODEC)
    vars(run)["model"] = Seq2Seq(config).eval()
    trained = Trained(run, recipe("inflection"), {})
    assert prediction_of(trained, long, answer("a")).attention == ()
    assert len(prediction_of(trained, RIGHT, answer("a")).attention) == 2


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (answer("a"), "only"),
        (answer("a", "b"), "complete"),
        (answer("a", dropped=0.25), "best"),
        (answer("a", "b", dropped=0.5), "unproven"),
    ],
)
def test_a_proof_is_named_for_what_it_is(found, word):
    assert proof(found) == word
    assert word in SENTENCES


def test_a_second_answer_is_not_the_best():
    ways = (Hypothesis((4,), 0.5, -0.7, True), Hypothesis((5,), 0.3, -1.2, True))
    assert [proof(Answer(ways, 0.2), rank) for rank in (0, 1)] == ["best", "unproven"]
    assert [proof(Answer(ways, 0.0), rank) for rank in (0, 1)] == ["complete", "complete"]
    equals = (ways[0], Hypothesis((5,), 0.5, -0.7, True))
    assert proof(Answer(equals, 0.1), 1) == "best"


def test_the_log_of_a_run_becomes_curves(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,loss,train_loss,exact\n1,2.5,,0.1\n2,1.5,1.25,0.2\n", encoding="utf-8")
    columns = read_log(path)
    assert columns["loss"] == [(1, 2.5), (2, 1.5)]
    assert columns["train_loss"] == [(2, 1.25)]
    charts = history_charts(columns)
    assert charts[0].series == {"training": [(2, 1.25)], "validation": [(1, 2.5), (2, 1.5)]}
    assert charts[2].series == {}
    assert read_log(tmp_path / "nothing.csv") == {}
