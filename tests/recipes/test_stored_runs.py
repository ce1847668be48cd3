"""Whatever is in the files of a stored run: it is loaded, or the error is a named one.

`law_stored_files(seed)` is the law for one drawn mutation; a fuzz loop may call it with any seed.
"""

from __future__ import annotations

import atexit
import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fenchel import FenchelError
from fenchel.analysis.history import read_log
from fenchel.cli import main
from fenchel.models import Seq2Seq
from fenchel.recipes import Recipe, recipe
from fenchel.recipes.figures import keep_figures
from fenchel.recipes.public import PublicSet
from fenchel.recipes.reading import read
from fenchel.recipes.running import Trained, codec_of
from fenchel.training import Run, predict
from fenchel.training.files import save_json, save_tensors
from fenchel.training.fit import load_checkpoint, sized
from fenchel.training.keeper import write_log
from fenchel.training.optimizer import adam
from fenchel.training.progress import Progress
from tests.mutations import memory_limit, mutated, mutated_bytes, mutations, text_of

ROOM = 2**31  # bytes: far more than a tiny run needs, far less than the mutated sizes ask for
SIZES = ["embedding_size=8", "hidden_size=8", "layers=1", "training.batch_size=2", "width=2"]
TINY = [*SIZES, "max_length=4"]
RUNS = {
    "inflection": (recipe("inflection", TINY), "a\tab\tV;PST\nb\tbb\tV;PRS\n"),
    "translation": (
        recipe("translation", [*TINY, "merges=3", "attention_map=combined", "attention_bases=6"]),
        "a cat, a hat\tein Hut\na bat\tein Rat\n",
    ),
}
FILES = ("config.json", "codec.json", "metrics.json", "log.csv", "best.pt", "checkpoints/last.ckpt")


def make(folder: Path, made: Recipe, content: str) -> Path:
    """The folder of a run as training leaves it, with weights as they are at the start."""
    data = folder / "data.tsv"
    folder.mkdir(parents=True)
    data.write_text(content)
    examples = read(made.data, [str(data)], need_targets=True)
    codec = codec_of(made, examples)
    config = sized(made.model, codec)
    kept = {"recipe": made.state(), "files": {"test": [str(data)]}, "public": None}
    run = Run(folder, config, made.training, codec, kept, "0" * 32)
    model, record = Seq2Seq(config), {"epoch": 1, "loss": 1.5, "accuracy": 0.5, "exact": 0.0}
    progress = Progress(segments=1, history=[record], best=0, seconds=1.0)
    run.save()
    save_tensors(run.weights_path, model.state_dict())
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": adam(model.parameters(), made.training, torch.device("cpu")).state_dict(),
        "precision": {},
        "totals": None,
        "progress": progress.state(),
    }
    save_tensors(run.checkpoint_path, checkpoint)
    save_json(run.metrics_path, {"dev": record})
    write_log(run, progress.history)
    return folder


@cache
def runs() -> dict[str, Path]:
    """The folder of each run, made once."""
    torch.manual_seed(0)
    folder = Path(mkdtemp(prefix="fenchel-stored-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {name: make(folder / name, *made) for name, made in RUNS.items()}


def load(folder: Path) -> Trained:
    """A run and its model, as `fenchel predict` loads them."""
    trained = Trained.load(folder)
    _ = trained.run.model
    return trained


def use(folder: Path) -> None:
    """Read all files of a run, and do with it what the commands do."""
    trained = load(folder)
    _, examples = trained.examples()
    predict(trained.run, None, examples[:2], width=2, max_length=3, batch_size=2)
    load_checkpoint(trained.run)
    read_log(trained.run.log_path)
    keep_figures(trained.run, "test", {})


def law_stored_files(seed: int) -> bool:
    """A run with one drawn file mutated is used, or refused by a `FenchelError`; whether it was used.

    A JSON file has fields mutated, or bytes like any other file. Any other exception breaks the law, and
    so does the need for more than 2 GB of memory.
    """
    random = Random(seed)
    with TemporaryDirectory() as parent, memory_limit(ROOM):
        folder = shutil.copytree(runs()[random.choice(list(RUNS))], Path(parent, "run"))
        path = folder / random.choice(FILES)
        if path.suffix == ".json" and random.random() < 0.8:
            document = json.loads(path.read_text("utf8"))
            if path.name == "codec.json" and random.random() < 0.5:
                document = _with_tokenizer(document, lambda own: mutated(own, random))
            else:
                document = mutated(document, random)
            path.write_text(text_of(document))
        else:
            path.write_bytes(mutated_bytes(path.read_bytes(), random))
        try:
            use(folder)
        except FenchelError:
            return False
    return True


def _with_tokenizer(codec: Any, change: Callable[[Any], Any]) -> Any:
    """The codec with its tokenizer, which is JSON in a string of JSON, changed; as it is without one."""
    segmentation = codec["source"]["segmentation"]
    if "tokenizer" in segmentation:
        segmentation["tokenizer"] = text_of(change(json.loads(segmentation["tokenizer"])))
    return codec


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a run that may be broken."""
    return shutil.copytree(runs()[request.param], tmp_path / "run")


def test_a_run_as_it_was_stored_is_used(run: Path):
    use(run)


def _documents(path: Path) -> Iterator[tuple[object, Any]]:
    document = json.loads(path.read_text("utf8"))
    yield from mutations(document)
    segmentation = document.get("source", {}).get("segmentation", {})
    if "tokenizer" in segmentation:
        for place, other in mutations(json.loads(segmentation["tokenizer"])):
            segmentation["tokenizer"] = text_of(other)
            yield ("source", "segmentation", "tokenizer", *place), document


@pytest.mark.parametrize("name", ["config.json", "codec.json", "metrics.json"])
def test_every_mutation_of_a_stored_file_is_loaded_or_refused(run: Path, name: str):
    path, config = run / name, Run.load(run).model_config
    failures, loaded, refused = [], 0, 0
    with memory_limit(ROOM):
        for place, document in _documents(path):
            path.write_text(text_of(document))
            try:
                trained = Trained.load(run)
                _ = trained.run.metrics
                if trained.run.model_config != config:  # of the same one there is a test above
                    _ = trained.run.model
                loaded += 1
            except FenchelError:
                refused += 1
            except Exception as error:
                failures.append(f"{place}: {type(error).__name__}: {error}"[:200])
    summary = f"{len(failures)} of {loaded + refused + len(failures)} mutations"
    assert not failures, "\n".join([summary, *failures])
    assert min(loaded, refused) > 0


@settings(max_examples=100)
@given(seed=st.integers(0, 2**63))
def test_drawn_mutations_are_used_or_refused(seed: int):
    law_stored_files(seed)


def test_some_drawn_mutations_are_used_and_some_refused():
    assert {law_stored_files(seed) for seed in range(20)} == {True, False}


def edit(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    state = json.loads((run / "config.json").read_text())
    change(state)
    (run / "config.json").write_text(json.dumps(state))


REFUSED: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (
        lambda state: state["model"].update(hidden_size=10**9),
        r"hidden_size must be at most \d+ to fit .*best\.pt, got 1000000000$",
    ),
    (
        lambda state: state["model"].update(layers=10**9),
        r"layers must be at most \d+ to fit .*best\.pt, got 1000000000$",
    ),
    (
        lambda state: state["model"].update(dropout="0.3"),
        r"config\.json: model\.dropout must be a number, got '0\.3'$",
    ),
    (
        lambda state: state["model"].update(source_size=10**9),
        r"config\.json: model\.source_size must be \d+ as in codec\.json, got 1000000000$",
    ),
    (
        lambda state: state["training"].update(strategy=3),
        r"config\.json: training\.strategy must be a string, got 3$",
    ),
    (
        lambda state: state["recipe"]["recipe"]["search"].update(width=10**9),
        r"config\.json: recipe\.recipe\.search: width must be at most 10000, got 1000000000$",
    ),
    (
        lambda state: state["recipe"].update(public=3),
        r"config\.json: recipe\.public must be an object or null, got 3$",
    ),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_the_command_line_names_the_field(run: Path, capsys, change: Any, message: str):
    edit(run, change)
    with memory_limit(ROOM), pytest.raises(SystemExit) as left:
        main(["predict", str(run), str(run / "data.tsv")])
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fenchel: ")
    with pytest.raises(FenchelError, match=message):
        raise FenchelError(line)


def test_sizes_that_only_one_weight_has_allocate_nothing(run: Path):
    """The vocabulary is often as large as a hidden size that fills the memory."""
    large, weights = 100_000, torch.load(run / "best.pt")
    weights["output.bias"] = torch.zeros(large)
    save_tensors(run / "best.pt", weights)
    edit(run, lambda state: state["model"].update(hidden_size=large))
    with memory_limit(ROOM), pytest.raises(FenchelError, match="must fit the configuration: "):
        load(run)


def _strided(value: Tensor) -> Tensor:
    return torch.zeros(1).expand(10**6, 10**6)


BROKEN: list[tuple[Callable[[Tensor], Any], str]] = [
    (lambda value: value.long(), "dense real tensors on the CPU, got .*int64"),
    (lambda value: value.to(torch.complex64), "dense real tensors on the CPU, got .*complex64"),
    (lambda value: value.to_sparse(), "dense real tensors on the CPU, got .*sparse"),
    (lambda value: value.to("meta"), "dense real tensors on the CPU, got .*meta"),
    (_strided, r"dense real tensors on the CPU, got .*\(1000000, 1000000\)"),
    (lambda value: value.tolist(), "dense real tensors on the CPU, got "),
    (lambda value: value / 0, "must be finite, got NaN or infinity in output.weight"),
    (lambda value: value * float("nan"), "must be finite, got NaN or infinity in output.weight"),
    (lambda value: value[:-1].clone(), r"'output.weight' must be \(.*\), got \("),
    (lambda value: value.flatten(), r"'output.weight' must be \(.*\), got \("),
]


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_weights_that_are_no_weights_of_the_model_are_refused(run: Path, change: Any, message: str):
    weights = torch.load(run / "best.pt")
    weights["output.weight"] = change(weights["output.weight"])
    save_tensors(run / "best.pt", weights)
    with memory_limit(ROOM), pytest.raises(FenchelError, match=message):
        load(run)


def test_weights_of_another_dtype_are_converted(run: Path):
    weights = torch.load(run / "best.pt")
    save_tensors(run / "best.pt", {name: value.half() for name, value in weights.items()})
    assert load(run).run.model.output.weight.dtype == torch.float32


def test_weights_with_other_names_are_refused(run: Path):
    weights = torch.load(run / "best.pt")
    save_tensors(run / "best.pt", {**weights, "more": torch.zeros(1)})
    with pytest.raises(FenchelError, match=r"'more' must be no such weight, got \(1,\)$"):
        load(run)
    del weights["output.bias"]
    save_tensors(run / "best.pt", weights)
    with pytest.raises(FenchelError, match=r"'output.bias' must be \(.*\), got no such weight$"):
        load(run)


def test_two_different_embeddings_cannot_be_shared(run: Path):
    edit(run, lambda state: state["model"].update(share_embeddings=True))
    with pytest.raises(FenchelError, match="shared embeddings must be equal"):
        load(run)


@pytest.mark.parametrize("name", ["best.pt", "checkpoints/last.ckpt"])
def test_compressed_tensors_are_refused_before_they_are_unpacked(run: Path, name: str):
    path = run / name
    with ZipFile(path) as parts:
        contents = {part: parts.read(part) for part in parts.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as parts:
        for part, content in contents.items():
            parts.writestr(part, content)
        parts.writestr("large", bytes(2**24))
    with pytest.raises(FenchelError, match="must be a whole file of tensors, got: compressed"):
        use(run)


@pytest.mark.parametrize("name", ["best.pt", "checkpoints/last.ckpt"])
def test_tensors_cut_short_are_refused(run: Path, name: str):
    content = (run / name).read_bytes()
    for size in range(0, len(content), max(1, len(content) // 20)):
        (run / name).write_bytes(content[:size])
        with pytest.raises(FenchelError, match="must be a whole file of tensors, got: "):
            use(run)


PARTS: list[tuple[str, Any, str]] = [
    ("optimizer", 3, "optimizer must be an object, got 3"),
    ("totals", "many", "totals must be a vector of 7 sums or None"),
    ("progress", {"best": 0}, r"progress\.best must be a place in the history"),
    ("progress", {"history": [{"loss": 1.0}]}, r"progress\.history must have epoch in every"),
    ("progress", {"history": [{"loss": "1"}]}, r"progress\.history\[0\]\.loss must be a number"),
]


@pytest.mark.parametrize(("name", "value", "message"), PARTS)
def test_a_part_of_a_checkpoint_that_was_not_written_is_refused(
    run: Path, name: str, value: Any, message: str
):
    path = run / "checkpoints" / "last.ckpt"
    save_tensors(path, {**torch.load(path), name: value})
    with pytest.raises(FenchelError, match=message):
        use(run)


def test_figures_that_are_no_figures_are_refused(run: Path):
    (run / "metrics.json").write_text("[]")
    with pytest.raises(FenchelError, match=r"metrics\.json must be an object, got \[\]$"):
        use(run)


@pytest.mark.parametrize("text", ["loss\n1\n", "epoch,loss\n1,x\n", "epoch,loss\n1,2,3\n", "\xff"])
def test_a_log_that_is_no_table_of_numbers_is_refused(run: Path, text: str):
    (run / "log.csv").write_text(text, encoding="latin-1")
    with pytest.raises(FenchelError, match=r"log\.csv must be a table of numbers"):
        use(run)


def test_an_option_that_a_public_set_does_not_have_is_refused(tmp_path: Path):
    with pytest.raises(FenchelError, match=r"no such option of multi30k: .* got 'setting'$"):
        PublicSet("multi30k", str(tmp_path), {"setting": "high"}).splits()
