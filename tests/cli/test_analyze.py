"""`fenchel analyze`: the heads of runs of Transformers and language models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fenchel.cli import main

SMALL = [
    "hidden_size=16",
    "heads=2",
    "layers=2",
    "feedforward_size=16",
    "max_length=8",
    "merges=12",
]
SMALL += ["training.batch_size=8", "batch_tokens=none", "accelerator=cpu", "threads=1", "dropout=0"]
WORDS = {"was": "what", "ist": "is", "größer": "larger", "kleiner": "smaller", "?": "?", ".": "."}
TEXTS = ["was ist größer ?", "was ist kleiner ?", "was größer ist .", "was kleiner ist ."] * 4


def train(recipe: str, folder: Path, *files: Path) -> Path:
    changes = [word for each in SMALL for word in ("--set", each)]
    names = [word for option in ("--train", "--dev") for word in (option, *map(str, files))]
    with pytest.raises(SystemExit) as left:
        main(["train", recipe, *names, "--out", str(folder), "--epochs", "2", *changes])
    assert left.value.code in (0, None)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("texts")
    german, english = folder / "text.de", folder / "text.en"
    german.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    translated = [" ".join(map(WORDS.get, text.split())) for text in TEXTS]  # pyright: ignore
    english.write_text("\n".join(translated) + "\n", encoding="utf-8")
    return german, english


@pytest.fixture(scope="module")
def transformer(files, tmp_path_factory) -> Path:
    return train("transformer", tmp_path_factory.mktemp("runs") / "transformer", *files)


@pytest.fixture(scope="module")
def language_model(files, tmp_path_factory) -> Path:
    return train("language-model", tmp_path_factory.mktemp("runs") / "language", files[1])


def test_the_heads_of_a_transformer(fenchel, transformer):
    outcome = fenchel("analyze", transformer, "--interrogatives", "de", "--examples", 3)
    assert outcome.code == 0, outcome.err
    for text in ("Transformer: 12 heads on 16 sentences", "median confidence", "heads by alpha"):
        assert text in outcome.out
    assert outcome.out.splitlines()[-1] == str(transformer / "analysis.json")
    stored = json.loads((transformer / "analysis.json").read_text(encoding="utf-8"))
    assert (stored["data"], stored["sentences"]) == ("dev", 16)
    places = [(head["kind"], head["layer"], head["head"]) for head in stored["heads"]]
    kinds = ("encoder", "context", "decoder")
    assert places == [(kind, layer, head) for kind in kinds for layer in (0, 1) for head in (0, 1)]
    assert all(1 < head["alpha"] < 2 for head in stored["heads"])
    encoder = [head for head in stored["heads"] if head["kind"] == "encoder"]
    assert all(head["interrogation"] is not None for head in encoder)
    assert all(0 < head["subword_merging"] < 1 for head in encoder)
    assert [sentence["sentence"] for sentence in stored["examples"]] == [0, 1, 2]
    first = stored["examples"][0]
    assert "".join(first["source"]).replace("▁", " ").split() == TEXTS[0].split()
    assert first["target"][0] == "<s>"
    assert sum(stored["alpha"]["counts"]["encoder"]) == 4
    course = stored["trajectories"]["encoder.0.1"]
    assert [epoch for epoch, _ in course] == [1, 2]
    assert course[-1][1] == pytest.approx(stored["heads"][1]["alpha"], abs=0.05)


def test_only_json_is_printed_where_it_is_asked_for(fenchel, transformer, files, tmp_path):
    data = [word for file in files for word in ("--data", file)]
    path = tmp_path / "new" / "heads.json"
    outcome = fenchel("analyze", transformer, *data, "--json", "--out", path)
    printed = json.loads(outcome.out)
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert printed == {name: stored[name] for name in stored if name not in ("examples", "unsure")}
    assert printed["data"] == f"{files[0]}, {files[1]}"
    assert len(stored["examples"]) == 6
    assert "analysis.json" not in outcome.err


def test_the_heads_of_a_language_model(fenchel, language_model):
    outcome = fenchel("analyze", language_model)
    assert outcome.code == 0, outcome.err
    stored = json.loads((language_model / "analysis.json").read_text(encoding="utf-8"))
    assert {head["kind"] for head in stored["heads"]} == {"decoder"}
    assert all(head["next_token"] is None for head in stored["heads"])
    first = stored["examples"][0]
    assert first["source"] is None
    assert first["target"][0] == "<s>"
    assert len(first["heads"][0]["keys"]) == len(first["target"])


def test_reports_have_a_view_of_the_heads(fenchel, transformer, language_model, run, tmp_path):
    pages = {}
    for name, folder in (("both", transformer), ("text", language_model), ("none", run)):
        path = tmp_path / f"{name}.html"
        assert fenchel("report", folder, "--out", path, "--examples", 2).code == 0
        pages[name] = path.read_text(encoding="utf-8")
    assert ">Attention heads<" in pages["both"]
    assert "Context attention, layer 1, head 1" in pages["both"]
    assert "Decoder self-attention, layer 1, head 1" in pages["text"]
    assert "Encoder self-attention" not in pages["text"]
    assert "Attention heads" not in pages["none"]


def test_comparisons_show_the_heads_of_two_models(fenchel, transformer, tmp_path):
    other, page = tmp_path / "other", tmp_path / "page.html"
    shutil.copytree(transformer, other)
    assert fenchel("compare", transformer, other, "--html", page, "--examples", 2).code == 0
    text = page.read_text(encoding="utf-8")
    assert ">Attention heads<" in text
    assert ">other: attention heads<" not in text
    assert "Heads of transformer" in text
    assert "Heads of other" in text


def test_a_run_without_heads_is_an_error(fenchel, run):
    outcome = fenchel("analyze", run)
    assert outcome.code != 0
    assert outcome.err.strip().endswith("the task sequences has no attention heads to analyze")
    assert not (run / "analysis.json").exists()


def test_bad_files_and_options_are_errors(fenchel, transformer, files, tmp_path):
    other, empty = tmp_path / "other.tsv", tmp_path / "empty.tsv"
    other.write_text("λόγος\tμῦθος\n", encoding="utf-8")
    empty.write_text("", encoding="utf-8")
    for arguments, message in (
        (["--data", other], f"must be known to the model of {transformer}, got 0%"),
        (["--data", empty], "must have at least one line"),
        (["--data", tmp_path / "none.tsv"], "none.tsv"),
        (["--interrogatives", "klingon"], "unknown language of interrogative words 'klingon'"),
        (["--interrogatives", "was,wer"], None),
        (["--threshold", "2"], "threshold"),
    ):
        outcome = fenchel("analyze", transformer, *arguments)
        assert (outcome.code == 0) == (message is None), arguments
        assert message is None or message in outcome.err
