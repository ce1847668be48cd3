"""Multi-label classification through the command line, on a person's own files."""

from __future__ import annotations

import csv
import json
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.preprocessing import StandardScaler

from fenchel import FenchelError
from fenchel.data.multilabel import iterate_multilabel
from fenchel.data.multilabel_example import MultilabelExample, Numbers
from fenchel.sklearn import SparsemaxClassifierCV
from fenchel.tasks import load_run
from fenchel.tasks.multilabel.processor import LabelProcessor
from fenchel.tasks.multilabel.public_sets import read_public_set
from fenchel.tasks.multilabel.task import set_metrics
from tests.cli import conftest as cli

fenchel = cli.fenchel
LABELS = ["calm", "happy", "sad"]
PENALTIES = (0.1, 0.001)
QUICK = ["--set", "penalties=0.1,0.001", "--set", "threads=1"]
WORDS = {"grain": ["wheat", "corn"], "oil": ["barrel", "crude"], "money": ["bank", "rate"]}
FILLER = ["the", "a", "of", "market", "said", "was", "week", "prices"]


@pytest.fixture(scope="module")
def table():
    """120 examples of 6 features with sets of 3 labels, none empty."""
    return make_multilabel_classification(
        n_samples=120, n_features=6, n_classes=3, n_labels=1, allow_unlabeled=False, random_state=1
    )


@pytest.fixture(scope="module")
def numbers(table, tmp_path_factory) -> Path:
    """The examples in every format of numbers: 80 to train on, 40 to test on."""
    X, Y = table
    folder = tmp_path_factory.mktemp("numbers")
    columns = [f"f{place}" for place in range(6)]
    for name, rows in (("train", slice(80)), ("test", slice(80, None))):
        header = ["@relation x", *(f"@attribute {each} numeric" for each in columns)]
        header += [*(f"@attribute {each} {{0,1}}" for each in LABELS), "@data"]
        data = [",".join(map(str, [*x, *y])) for x, y in zip(X[rows], Y[rows], strict=True)]
        _write(folder / f"set-{name}.arff", [*header, *data])
        _write(folder / f"{name}.csv", [",".join([*columns, *LABELS]), *data])
        lines = []
        for x, y in zip(X[rows], Y[rows], strict=True):
            labels = ",".join(LABELS[k] for k in np.flatnonzero(y))
            lines.append(" ".join([labels, *(f"{k + 1}:{v}" for k, v in enumerate(x))]))
        _write(folder / f"{name}.svm", lines)
    _write(folder / "set.xml", ["<labels>", *(f'<label name="{n}"/>' for n in LABELS), "</labels>"])
    return folder


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    draw = random.Random(0)
    for name, count in (("train", 90), ("dev", 20), ("test", 30)):
        lines = []
        for _ in range(count):
            labels = draw.sample(list(WORDS), k=draw.randint(1, 2))
            words = draw.choices(FILLER, k=4) + [draw.choice(WORDS[label]) for label in labels]
            draw.shuffle(words)
            lines.append(f"{', '.join(labels)}\t{' '.join(words)}")
        _write(folder / f"{name}.tsv", lines)
    return folder


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def train(fenchel, folder: Path, ending: str, out: Path, *options):
    prefix = "set-" if ending == "arff" else ""
    files = [f"--{name}={folder / f'{prefix}{name}.{ending}'}" for name in ("train", "test")]
    return fenchel("train", "multilabel", *files, "--out", out, *QUICK, *options)


@pytest.mark.parametrize("ending", ["arff", "csv", "svm"])
def test_a_run_on_numbers_is_the_estimator(fenchel, numbers, table, tmp_path, ending):
    """On dense columns scaled to mean 0 and variance 1; rows of svmlight stay as they are."""
    named = [f"--set=labels={','.join(LABELS)}"] if ending == "csv" else []
    outcome = train(fenchel, numbers, ending, tmp_path / "run", *named)
    assert outcome.code == 0, outcome.err
    assert "chosen by 5-fold cross-validation: penalty" in outcome.err
    X, Y = table
    dense = ending != "svm"
    scale = StandardScaler().fit(X[:80]).transform if dense else sparse.csr_array
    estimator = SparsemaxClassifierCV(
        Cs=[1 / (80 * penalty) for penalty in PENALTIES], random_state=0, max_iter=500
    ).fit(scale(X[:80]), Y[:80])
    run = load_run(tmp_path / "run")
    model = run.model
    np.testing.assert_allclose(model.output.weight.detach(), estimator.coef_, atol=2e-3)
    assert float(model.rule) == estimator.inverse_temperature_
    metrics = json.loads(fenchel("evaluate", tmp_path / "run", "--json").out)
    found = estimator.predict(scale(X[80:]))
    assert metrics["accuracy"] == pytest.approx(100 * (found == Y[80:]).all(1).mean())
    assert metrics["f1_micro"] == pytest.approx(
        200 * (found & Y[80:]).sum() / (found.sum() + Y[80:].sum())
    )
    assert metrics["labels"] == pytest.approx(found.sum(1).mean())
    prefix = "set-" if ending == "arff" else ""
    file = numbers / f"{prefix}test.{ending}"
    rows = [
        json.loads(line) for line in fenchel("predict", run.path, file, "--json").out.splitlines()
    ]
    p = estimator.predict_proba(scale(X[80:]))
    for row, proportions, marks in zip(rows, p, found, strict=True):
        assert {*row["labels"]} == {LABELS[k] for k in np.flatnonzero(marks)}
        expected = {LABELS[k]: proportions[k] for k in np.flatnonzero(proportions)}
        assert row["proportions"] == pytest.approx(expected, abs=1e-2)


@pytest.fixture(scope="module")
def run(texts, tmp_path_factory) -> Path:
    """A run on texts, whose settings are chosen on development examples."""
    folder = tmp_path_factory.mktemp("runs") / "texts"
    files = [f"--{name}={texts / name}.tsv" for name in ("train", "dev", "test")]
    with pytest.raises(SystemExit) as left:
        cli.main(["train", "multilabel", *files, "--out", str(folder), *QUICK])
    assert left.value.code in (0, None)
    return folder


def test_texts_are_predicted_from_files_and_from_lines(fenchel, run, texts, monkeypatch, tmp_path):
    metrics = json.loads(fenchel("evaluate", run, "--json").out)
    assert metrics["f1_micro"] > 90
    assert metrics["examples"] == 30
    path = tmp_path / "new.txt"
    path.write_text("wheat and corn\n\ncrude bank\nxyzzy\n", encoding="utf-8")
    outcome = fenchel("predict", run, path)
    first, blank, both, _ = outcome.out.splitlines()
    assert first.startswith("grain\tgrain:")
    assert blank == ""
    assert {*both.split("\t")[0].split(", ")} == {"oil", "money"}
    assert "1 text has no word that the model knows" in outcome.err
    shown = json.loads(fenchel("predict", run, path, "--json").out.splitlines()[0])
    assert shown["text"] == "wheat and corn"
    assert sum(shown["proportions"].values()) == pytest.approx(1)
    assert "oil" not in shown["proportions"]


def test_a_report_has_labels_with_their_features(fenchel, run, tmp_path):
    page = tmp_path / "page.html"
    assert fenchel("report", run, "--out", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "wheat" in text
    assert "features with the largest weights" in text
    assert "<h2>Training</h2>" not in text


def test_a_run_is_finished_and_resumes_as_such(fenchel, run, texts):
    before = (run / "best.pt").read_bytes()
    outcome = fenchel("resume", run)
    assert outcome.code == 0
    assert "the run is finished" in outcome.err
    assert (run / "best.pt").read_bytes() == before
    with (run / "log.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["f1_micro"]) > 0.9


def test_more_epochs_continue_a_run_that_has_not_converged(fenchel, numbers, tmp_path):
    out = tmp_path / "run"
    outcome = train(fenchel, numbers, "arff", out, "--epochs", "2")
    assert "L-BFGS stopped after 2 epochs, before the tolerance" in outcome.err
    again = train(fenchel, numbers, "arff", out, "--epochs", "300")
    assert again.code == 0
    assert "L-BFGS stopped" not in again.err
    assert "the run is finished" in train(fenchel, numbers, "arff", out, "--epochs", "300").err


@pytest.mark.parametrize("loss", ["softmax", "logistic", "entmax"])
def test_other_losses_train_as_well(fenchel, texts, tmp_path, loss):
    options = [f"--set=loss={loss}", "--set=alphas=1.25,1.75"]
    outcome = train(fenchel, texts, "tsv", tmp_path / "run", *options)
    assert outcome.code == 0, outcome.err
    assert ("alpha 1." in outcome.err) == (loss == "entmax")
    assert json.loads(fenchel("evaluate", tmp_path / "run", "--json").out)["f1_micro"] > 85


def test_a_run_without_other_examples_is_evaluated_on_a_file(fenchel, texts, tmp_path):
    out = tmp_path / "run"
    file = texts / "train.tsv"
    outcome = fenchel("train", "multilabel", f"--train={file}", "--out", out, *QUICK)
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    refused = fenchel("evaluate", out)
    assert refused.code == 2
    assert "has neither test nor development examples: pass --data FILE" in refused.err
    assert fenchel("evaluate", out, f"--data={texts / 'test.tsv'}").code == 0


def test_typed_numbers_are_read_in_both_forms(fenchel, numbers, tmp_path):
    train(fenchel, numbers, "svm", tmp_path / "run")
    stored = load_run(tmp_path / "run")
    predictor = stored.task.predictor(stored, stored.task.predict_options())
    one, other = predictor.parse("1,2,0,4,5,6"), predictor.parse("1:1 2:2 4:4 5:5 6:6")
    assert predictor.predict([one]) == predictor.predict([other])
    with pytest.raises(FenchelError, match="a line must have 6 numbers, got 2"):
        predictor.parse("1,2")
    with pytest.raises(FenchelError, match="must be a number, got 'x'"):
        predictor.parse("1,2,3,4,5,x")


# Bad input


def test_bad_rows_are_named_or_skipped(fenchel, numbers, tmp_path):
    lines = (numbers / "set-train.arff").read_text(encoding="utf-8").splitlines()
    first = 1 + lines.index("@data")
    lines[first + 2] = lines[first + 2].replace(",", ",nan,", 1).rpartition(",")[0]
    lines[first + 5] = ",".join(["1"] * 6 + ["0"] * 3)
    _write(tmp_path / "set.arff", lines)
    (tmp_path / "set.xml").write_text((numbers / "set.xml").read_text(), encoding="utf-8")
    command = ["train", "multilabel", f"--train={tmp_path / 'set.arff'}", "--out", tmp_path / "run"]
    outcome = fenchel(*command, *QUICK)
    assert outcome.code == 2
    assert f"set.arff:{first + 3}: attribute 'f1' must be finite, got nan" in outcome.err
    assert not (tmp_path / "run").exists()
    outcome = fenchel(*command, *QUICK, "--skip-bad")
    assert outcome.code == 0
    assert "training on 78 examples" in outcome.err
    assert "2 bad items were skipped" in outcome.err
    assert f"set.arff:{first + 6}: example must have at least one label" in outcome.err


def test_a_label_without_examples_is_named_or_left_out(fenchel, numbers, tmp_path):
    text = (numbers / "set-train.arff").read_text(encoding="utf-8")
    text = text.replace("@attribute calm {0,1}", "@attribute calm {0,1}\n@attribute rare {0,1}")
    head, data = text.split("@data\n")
    rows = [row.split(",") for row in data.splitlines()]
    rows = [",".join([*row[:7], "0", *row[7:]]) for row in rows]
    _write(tmp_path / "set.arff", [f"{head}@data", *rows])
    _write(
        tmp_path / "set.xml",
        ["<labels>", *(f'<label name="{n}"/>' for n in [*LABELS, "rare"]), "</labels>"],
    )
    command = ["train", "multilabel", f"--train={tmp_path / 'set.arff'}", "--out", tmp_path / "run"]
    outcome = fenchel(*command, *QUICK)
    assert outcome.code == 2
    assert (
        "set.xml:5: label must have at least one training example, got none for 'rare'"
        in outcome.err
    )
    outcome = fenchel(*command, *QUICK, "--skip-bad")
    assert outcome.code == 0
    assert "1 bad item was skipped" in outcome.err
    assert load_run(tmp_path / "run").processor.labels == LABELS


def test_features_of_another_kind_are_refused(fenchel, run, numbers, tmp_path):
    outcome = fenchel("evaluate", run, f"--data={numbers / 'set-test.arff'}")
    assert outcome.code == 2
    assert "examples must be texts, as in training, got numbers" in outcome.err


def test_examples_that_lack_columns_are_refused():
    rows = [(("a", "b"), (1.0, 2.0), ("x",)), (("a", "b"), (0.0, 1.0), ("y",))]
    examples = [MultilabelExample(Numbers(c, np.array(v)), labels) for c, v, labels in rows]
    processor = LabelProcessor.fit(examples)
    other = MultilabelExample(Numbers(("a", "c"), np.array([1.0, 2.0])))
    with pytest.raises(FenchelError, match="columns of the training examples: 'b' missing"):
        processor.encode([other])
    with pytest.raises(FenchelError, match="all examples must be texts, or all must be numbers"):
        LabelProcessor.fit([*examples, MultilabelExample("a text", ("x",))])
    with pytest.raises(FenchelError, match="at least two labels, got x"):
        LabelProcessor.fit(examples[:1])


def test_settings_that_cannot_be_are_refused(fenchel, texts, tmp_path):
    for setting, message in (
        ("penalties=", "penalties must have at least one number"),
        ("penalties=-1", "penalties must be above 0"),
        ("folds=1", "folds must be a whole number of at least 2"),
        ("folds=91", "folds must be at most 90"),
        ("loss=hinge", "loss must be"),
    ):
        outcome = train(fenchel, texts, "tsv", tmp_path / "run", f"--set={setting}")
        assert outcome.code == 2
        assert message in outcome.err
        assert not (tmp_path / "run" / "config.json").exists()


# Metrics and public sets


def test_unknown_labels_count_as_missed():
    from fenchel.tasks.multilabel.predictor import LabelSet

    examples = [MultilabelExample("a", ("x", "new")), MultilabelExample("b", ("y",))]
    found = [LabelSet(("x",), {"x": 1.0}), LabelSet(("y",), {"y": 1.0})]
    metrics = set_metrics(["x", "y"], examples, found)
    assert metrics["f1_micro"] == pytest.approx(100 * 4 / 5)
    assert metrics["f1_macro"] == pytest.approx(100 * 2 / 3)
    assert metrics["accuracy"] == 50
    assert metrics["unknown_labels"] == 1


def test_reuters_has_topics_of_both_splits(tmp_path):
    rows = [
        ("TRAIN", ["a", "b"]),
        ("TRAIN", ["a"]),
        ("TRAIN", ["c"]),
        ("TRAIN", []),
        ("TEST", ["b"]),
    ]
    rows += [("TEST", ["a", "d"]), ("NOT-USED", ["a"]), *[("TRAIN", ["b"])] * 8]
    lines = [
        json.dumps({"lewis": split, "topics": topics, "title": f"T{place}", "body": "text"})
        for place, (split, topics) in enumerate(rows)
    ]
    _write(tmp_path / "reuters21578.jsonl", lines)
    found = read_public_set("reuters21578", tmp_path)
    assert {name: len(part) for name, part in found.items()} == {"train": 9, "dev": 1, "test": 2}
    assert [each.labels for each in found["test"]] == [("b",), ("a",)]
    assert found["test"][0].features == "T4 text"
    assert read_public_set("reuters21578", tmp_path) == found


def test_mulan_sets_have_no_unlabelled_examples(numbers, tmp_path):
    folder = tmp_path / "emotions"
    folder.mkdir()
    for name in ("train", "test"):
        text = (numbers / f"set-{name}.arff").read_text(encoding="utf-8")
        (folder / f"emotions-{name}.arff").write_text(
            f"{text}1,1,1,1,1,1,0,0,0\n", encoding="utf-8"
        )
    (folder / "emotions.xml").write_text((numbers / "set.xml").read_text(), encoding="utf-8")
    found = read_public_set("mulan", tmp_path, set="emotions")
    assert [len(found[name]) for name in ("train", "dev", "test")] == [80, 0, 40]
    expected = list(iterate_multilabel(numbers / "set-test.arff"))
    assert [each.labels for each in found["test"]] == [each and each.labels for each in expected]
    with pytest.raises(FenchelError, match="unknown set of mulan 'birdz', did you mean 'birds'"):
        read_public_set("mulan", tmp_path, set="birdz")
    with pytest.raises(FenchelError, match="unknown option of mulan"):
        read_public_set("mulan", tmp_path, fold="1")


def test_the_processor_is_stored_and_read(texts, numbers):
    for path in (texts / "train.tsv", numbers / "set-train.arff", numbers / "train.svm"):
        examples = [each for each in iterate_multilabel(path) if each is not None]
        processor = LabelProcessor.fit(examples)
        state = json.loads(json.dumps(processor.state()))
        again = LabelProcessor.from_state(state, "processor.json")
        assert again == processor
        one, other = processor.encode(examples[:5]), again.encode(examples[:5])
        assert all(a.equal(b) for a, b in zip(one.tensors(), other.tensors(), strict=True))
    with pytest.raises(
        FenchelError, match=r"processor\.json must have the key 'numbers' or 'words'"
    ):
        LabelProcessor.from_state({"labels": ["a", "b"]}, "processor.json")


def test_no_warning_escapes_the_choice(fenchel, texts, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train(fenchel, texts, "tsv", tmp_path / "run", "--epochs", "3").code == 0
