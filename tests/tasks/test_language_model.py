"""Language models through the command line: training, metrics, continuations, bad input."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from fenchel import FenchelError
from fenchel.cli import main
from fenchel.data.vocabulary import EOS
from fenchel.recipes import make_recipe
from fenchel.tasks import load_run
from fenchel.tasks.language_model import LanguageModelProcessor
from fenchel.tasks.language_model.metrics import EPSILON, smoothed_metrics
from tests.cli import conftest as cli

fenchel = cli.fenchel

CYCLE = "abcdef"
TINY = ["segmentation=characters", "hidden_size=16", "heads=2", "layers=1", "feedforward_size=32"]
TINY += ["dropout=0", "training.batch_size=8", "batch_tokens=none", "learning_rate=0.02"]
TINY += ["warmup_steps=20", "width=2", "max_length=8", "accelerator=cpu", "threads=1"]


def cycles(count: int, seed: int) -> list[str]:
    """Parts of "abcdefabcdef…": all but the first letter and the end can be told from what is before."""
    draw = random.Random(seed)
    starts = [(draw.randrange(len(CYCLE)), draw.randint(8, 12)) for _ in range(count)]
    return ["".join(CYCLE[(start + k) % 6] for k in range(length)) for start, length in starts]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cycles")
    for seed, (name, count) in enumerate({"train": 64, "dev": 16, "test": 16}.items()):
        (folder / f"{name}.txt").write_text("\n\n".join(cycles(count, seed)) + "\n")
    return folder


def training(files: Path, out: Path, *changes: str, epochs: int = 10) -> list[str]:
    words = ["train", "language-model", "--out", str(out), "--epochs", str(epochs)]
    words += [f"--{name}={files / name}.txt" for name in ("train", "dev", "test")]
    return words + [word for change in (*TINY, *changes) for word in ("--set", change)]


@pytest.fixture(scope="module")
def run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(training(files, tmp_path_factory.mktemp("runs") / "dense"))


@pytest.fixture(scope="module")
def sparse(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with sparse probabilities, on blocks of running text."""
    out = tmp_path_factory.mktemp("runs") / "sparse"
    return trained(training(files, out, "output_alpha=2", "block_size=16", "attention_alpha=1.5"))


def trained(command: list[str]) -> Path:
    with pytest.raises(SystemExit) as left:
        main(command)
    assert left.value.code in (0, None)
    return Path(command[3])


def measured(run: Path) -> tuple[Any, Any]:
    """The model and the encoded test texts of a run."""
    stored = load_run(run)
    _, texts = stored.evaluation_examples()
    return stored.model, stored.processor.encode(texts)


def test_it_learns_what_comes_next(fenchel, run, files):
    metrics = json.loads(fenchel("evaluate", run, "--json").out)
    assert 1 < metrics["perplexity"] < 2.5
    assert metrics["accuracy"] > 60
    assert metrics["examples"] == 16
    assert metrics["symbols"] == len((files / "test.txt").read_text().replace("\n", "")) + 16
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["loss"]))
    assert metrics["eps_perplexity"] == pytest.approx(metrics["perplexity"], rel=1e-3)
    shown = fenchel("evaluate", run).out
    assert "perplexity per symbol" in shown
    assert "learned alpha" in shown


def test_sparse_probabilities_have_no_perplexity(fenchel, sparse):
    metrics = json.loads(fenchel("evaluate", sparse, "--json").out)
    assert "perplexity" not in metrics
    assert metrics["output_support"] < len(CYCLE)
    assert 0.5 < metrics["sparsemax_score"] <= 1
    assert metrics["sparsemax_score"] > 1 - metrics["loss"]  # the loss is above its quadratic bound
    assert "alpha" not in metrics


def test_the_metrics_are_means_of_their_definitions(sparse):
    model, data = measured(sparse)
    found = smoothed_metrics(model, data, (4, None))
    logarithms, scores = [], []
    for row in range(len(data)):
        tokens, lengths = data.batch(torch.tensor([row]))
        for p, symbol in zip(
            model.attend(tokens, lengths).probabilities[0], tokens[0], strict=True
        ):
            smoothed = (p.double() + EPSILON) / (p.double() + EPSILON).sum()
            logarithms.append(smoothed[symbol].log())
            one_hot = torch.nn.functional.one_hot(symbol, len(p))
            scores.append(1 - (one_hot - p.double()).square().sum() / 2)
    mean = {name: torch.stack(each).mean() for name, each in (("log", logarithms), ("sp", scores))}
    assert found["eps_perplexity"] == pytest.approx(mean["log"].neg().exp().item(), rel=1e-5)
    assert found["sparsemax_score"] == pytest.approx(mean["sp"].item(), rel=1e-5)
    assert found == pytest.approx(smoothed_metrics(model, data, (256, 20)), rel=1e-6)


def test_predictions_continue_texts(fenchel, run, tmp_path):
    (tmp_path / "start.txt").write_text("abcd\n\nefab\n")
    lines = fenchel("predict", run, tmp_path / "start.txt").out.splitlines()
    first, blank, second = (line.split("\t") for line in lines)
    assert first[0] == "abcd"
    assert first[1].startswith("abcdefab")
    assert blank == [""]
    assert second[1].startswith("efabcdef")
    assert 0 < float(first[2]) <= 1
    answer = json.loads(
        fenchel("predict", run, tmp_path / "start.txt", "--json").out.split("\n")[0]
    )
    assert answer["text"] == "abcd"
    assert answer["answers"][0]["text"] == first[1].removesuffix(" …")


def test_drawn_continuations_depend_on_the_seed_alone(fenchel, run, tmp_path):
    (tmp_path / "start.txt").write_text("a\n")
    outputs = [
        fenchel("predict", run, tmp_path / "start.txt", "--samples", 3, "--seed", seed).out
        for seed in (1, 2, 1)
    ]
    assert outputs[0] == outputs[2] != outputs[1]
    assert len(outputs[0].splitlines()) == 3


def test_a_continuation_does_not_depend_on_the_other_lines(fenchel, run, tmp_path):
    (tmp_path / "one.txt").write_text("bcd\n")
    (tmp_path / "two.txt").write_text("bcd\nabcdefabc\n")
    one, two = (fenchel("predict", run, tmp_path / name).out for name in ("one.txt", "two.txt"))
    assert one.splitlines()[0].split("\t")[:2] == two.splitlines()[0].split("\t")[:2]


def test_a_report_shows_the_attention(fenchel, run, tmp_path):
    page = tmp_path / "page.html"
    assert fenchel("report", run, "--out", page, "--examples", 2).code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("Attention in: ") >= 2
    assert "Learned alpha: decoder, layer 0" in text
    assert "perplexity per symbol" in text


def test_runs_are_compared(fenchel, run, sparse, files):
    outcome = fenchel("compare", run, sparse, "--data", files / "dev.txt")
    assert outcome.code == 0, outcome.err
    assert "eps_perplexity" in outcome.out


@pytest.mark.parametrize("size", [1, 4, 100])
def test_blocks_are_the_running_text(size: int):
    texts = ["ab", "c", "abc"]
    lines = LanguageModelProcessor.fit(texts, segmentation="characters")
    blocks = LanguageModelProcessor.fit(texts, segmentation="characters", block_size=size)
    whole = [number for text in texts for number in [*lines.ids(text), EOS]]
    data = blocks.encode(texts)
    rows = [data.batch(torch.tensor([k])).tokens[0].tolist() for k in range(len(data))]
    assert sum(rows, []) == whole  # noqa: RUF017
    assert all(len(row) == size for row in rows[:-1])


@pytest.mark.parametrize("segmentation", ["characters", "words", "subwords"])
def test_a_processor_survives_being_stored(segmentation: str):
    texts = ["a cat sat", "a hat sat"]
    processor = LanguageModelProcessor.fit(texts, segmentation=segmentation, merges=5, block_size=7)
    stored = json.loads(json.dumps(processor.state()))
    restored = LanguageModelProcessor.from_state(stored, "processor.json")
    assert restored.state() == processor.state()
    assert restored.continued("a cat", restored.ids(" sat")) == "a cat sat"
    assert restored.encode(texts).lengths.tolist() == processor.encode(texts).lengths.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("block_size=0", "block_size must be a whole number of at least 1, got 0"),
        ("block_size=2000", "block_size must be at most max_positions = 1024, got 2000"),
        ("max_length=1024", "search.max_length must be below max_positions = 1024, got 1024"),
        ("segmentation=letters", "must be 'characters', 'words' or 'subwords', got 'letters'"),
    ],
)
def test_a_wrong_setting_is_refused(change: str, message: str):
    with pytest.raises(FenchelError, match=message):
        make_recipe("language-model", [change])


def test_bad_texts_are_named(fenchel, files, run, tmp_path):
    long, other = tmp_path / "long.txt", tmp_path / "other.txt"
    long.write_text("ab\n" + "abcdef" * 10 + "\n")
    other.write_text("ΛΟΓΟΣ\n", encoding="utf-8")
    refused = fenchel(
        "train", "language-model", "--train", long, "--dev", files / "dev.txt", "--out",
        tmp_path / "run", *(word for each in TINY for word in ("--set", each)),
        "--set", "max_positions=50",
    )  # fmt: skip
    assert refused.code == 2
    assert "training data: a text must have at most max_positions = 50 symbols" in refused.err
    assert "got 61 in text 2: 'abcdef" in refused.err
    unknown = fenchel("evaluate", run, "--data", other)
    assert unknown.code == 2
    assert "texts must have symbols that the model knows, got none, as in 'ΛΟΓΟΣ'" in unknown.err
    assert "the model does not know 'Λ'" in fenchel("predict", run, other).err
    long.write_text("ab\n" + "abcdef" * 180 + "\n")
    too_long = fenchel("predict", run, long)
    assert too_long.code == 2
    assert "a text to continue must have at most 1016 symbols" in too_long.err
    assert "got 1080 in example 2: 'abcdef" in too_long.err
    columns = fenchel("evaluate", run, "--data", files / "dev.txt", "--columns", "text=line")
    assert columns.code == 2
    assert "--columns cannot be used with plain text" in columns.err
