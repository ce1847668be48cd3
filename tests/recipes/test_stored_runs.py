"""Whatever the files of a stored run contain, the run is loaded or a `FenchelError` is raised.

`law_stored_files(seed)` is the law for one drawn mutation; a fuzz loop may call it with any seed.
"""

from __future__ import annotations

import atexit
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
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
from fenchel.cli import main
from fenchel.models.means import stack_means
from fenchel.recipes import make_recipe
from fenchel.report import read_log
from fenchel.tasks import load_run
from fenchel.tasks.sequences import SequenceTask, decode
from fenchel.training import DataSource, PublicSet, Recipe, Run
from fenchel.training.checkpoint import load_checkpoint
from fenchel.training.device import adam
from fenchel.training.files import save_json, save_tensors
from fenchel.training.progress import Progress
from fenchel.training.recorder import write_log
from tests.mutations import memory_limit, mutated, mutated_bytes, mutations, text_of

pytest.importorskip("pydantic", reason="the extra 'train' is not installed")

ROOM = 2**31  # bytes: far more than a tiny run needs, far less than the mutated sizes ask for
SIZES = ["hidden_size=8", "layers=1", "training.batch_size=2", "width=2", "max_length=4"]
TINY = [*SIZES, "embedding_size=8"]
LAYERS = [*SIZES, "heads=2", "feedforward_size=8", "merges=3", "max_positions=50"]
PAIRS = "a cat, a hat\tein Hut\na bat\tein Rat\n"
RUNS: dict[str, tuple[Recipe, str]] = {
    "inflection": (make_recipe("inflection", TINY), "a\tab\tV;PST\nb\tbb\tV;PRS\n"),
    "translation": (
        make_recipe(
            "translation", [*TINY, "merges=3", "attention_map=combined", "attention_bases=6"]
        ),
        PAIRS,
    ),
    "documents": (
        make_recipe(
            "documents",
            ["embedding_size=8", "hidden_size=8", "training.batch_size=2", "min_count=1"],
        ),
        "good\ta superb film\nbad\ta dull film\n",
    ),
    "nli": (
        make_recipe("nli", ["embedding_size=8", "hidden_size=8", "batch_size=2", "min_count=1"]),
        "yes\ta dog\ta dog\nno\ta dog\ta cat\n",
    ),
    "intervals": (
        make_recipe(
            "documents",
            ["embedding_size=8", "hidden_size=8", "attention=pooled", "attention_bases=4"],
        ),
        "good\ta superb film\nbad\ta dull film\n",
    ),
    "transformer": (make_recipe("transformer", LAYERS), PAIRS),
    "language-model": (make_recipe("language-model", LAYERS), "a cat, a hat\nein Hut\n"),
}
SEQUENCES = ("inflection", "translation", "transformer")
sequences_only = pytest.mark.parametrize("run", SEQUENCES, indirect=True)
FILES = (
    "config.json",
    "processor.json",
    "metrics.json",
    "log.csv",
    "best.pt",
    "checkpoints/last.ckpt",
)


def make(folder: Path, recipe: Recipe, content: str) -> Path:
    """The folder of a run as training leaves it, with weights as they are at the start."""
    data = folder / ("data.tsv" if "\t" in content else "data.txt")
    folder.mkdir(parents=True)
    data.write_text(content)
    examples = recipe.task.read([str(data)])
    processor = recipe.task.fit_processor(examples)
    recipe = replace(recipe, task=recipe.task.sized(processor))
    source = DataSource.of_files({"test": [str(data)]})
    run = Run(folder, recipe, processor, source, "0" * 32)
    model, record = run.task.build_model(), {"epoch": 1, "loss": 1.5, "accuracy": 0.5, "exact": 0.0}
    means = model.loss(processor.encode(examples).batch(torch.arange(len(examples))))
    progress = Progress(segments=1, history=[record], best=0, seconds=1.0)
    run.save()
    save_tensors(run.weights_path, model.state_dict())
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": adam(model.parameters(), recipe.training, torch.device("cpu")).state_dict(),
        "precision": {},
        "means": dict(zip(means, stack_means(means), strict=True)),
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


def load(folder: Path) -> Run:
    """A run and its model, as `fenchel predict` loads them."""
    run = load_run(folder)
    _ = run.model
    return run


def use(folder: Path) -> None:
    """Read all files of a run, and use it as the commands do."""
    run = load(folder)
    _, examples = run.evaluation_examples()
    if isinstance(run.task, SequenceTask):
        decode(run.model, run.processor, examples[:2], width=2, max_length=3, batch_size=2)
    else:
        run.task.evaluate(run, examples)
    load_checkpoint(run.checkpoint_path)
    read_log(run.log_path)
    run.save_metrics("test_evaluation", {})


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
            if path.name == "processor.json" and random.random() < 0.5:
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


def _with_tokenizer(processor: Any, change: Callable[[Any], Any]) -> Any:
    """The processor with its tokenizer changed, which is JSON in a string; as it is without one."""
    segmentation = processor.get("source", processor).get("segmentation", {})
    if "tokenizer" in segmentation:
        segmentation["tokenizer"] = text_of(change(json.loads(segmentation["tokenizer"])))
    return processor


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a run that may be broken."""
    return shutil.copytree(runs()[request.param], tmp_path / "run")


def test_a_run_as_it_was_stored_is_used(run: Path):
    use(run)


def _documents(path: Path) -> Iterator[tuple[object, Any]]:
    document = json.loads(path.read_text("utf8"))
    yield from mutations(document)
    segmentation = document.get("source", document).get("segmentation", {})
    if "tokenizer" in segmentation:
        for place, other in mutations(json.loads(segmentation["tokenizer"])):
            segmentation["tokenizer"] = text_of(other)
            yield ("segmentation", "tokenizer", *place), document


@pytest.mark.parametrize("name", ["config.json", "processor.json", "metrics.json"])
def test_every_mutation_of_a_stored_file_is_loaded_or_refused(run: Path, name: str):
    path, task = run / name, load_run(run).task
    failures, loaded, refused = [], 0, 0
    with memory_limit(ROOM):
        for place, document in _documents(path):
            path.write_text(text_of(document))
            try:
                loaded_run = load_run(run)
                _ = loaded_run.metrics
                if loaded_run.task.model != task.model:  # the test above loads this model
                    _ = loaded_run.model
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
        lambda state: state["recipe"]["task"]["model"].update(hidden_size=10**9),
        r"hidden_size must be at most \d+ to fit .*best\.pt, got 1000000000$",
    ),
    (
        lambda state: state["recipe"]["task"]["model"].update(layers=10**9),
        r"layers must be at most \d+ to fit .*best\.pt, got 1000000000$",
    ),
    (
        lambda state: state["recipe"]["task"]["model"].update(dropout="0.3"),
        r"config\.json: recipe\.task\.model\.dropout must be a number, got '0\.3'$",
    ),
    (
        lambda state: state["recipe"]["training"].update(strategy=3),
        r"config\.json: recipe\.training\.strategy must be a string, got 3$",
    ),
    (
        lambda state: state["recipe"]["task"]["search"].update(width=10**9),
        r"config\.json: recipe\.task\.search: width must be at most 10000, got 1000000000$",
    ),
    (
        lambda state: state["recipe"]["task"].update(kind="mystery"),
        r"config\.json: recipe\.task\.kind must be sequences.*, got 'mystery'$",
    ),
    (
        lambda state: state["recipe"]["training"].update(monitor="mystery"),
        r"config\.json: recipe\.training: monitor must be .*'mystery'$",
    ),
    (
        lambda state: state.update(public=3),
        r"config\.json: public must be an object or null, got 3$",
    ),
]


@sequences_only
@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_the_command_line_names_the_field(run: Path, capsys, change: Any, message: str):
    edit(run, change)
    with memory_limit(ROOM), pytest.raises(SystemExit) as left:
        main(["predict", str(run), *map(str, run.glob("data.t*"))])
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fenchel: ")
    with pytest.raises(FenchelError, match=message):
        raise FenchelError(line)


@sequences_only
def test_the_sizes_of_vocabularies_come_from_the_processor(run: Path):
    model = json.loads((run / "config.json").read_text())["recipe"]["task"]["model"]
    sizes = ("source_size", "target_size")
    assert not {*sizes} & model.keys()
    large = dict.fromkeys(sizes, 10**9)
    edit(run, lambda state: state["recipe"]["task"]["model"].update(large))
    with memory_limit(ROOM):
        loaded = load(run)
    assert loaded.task.model.source_size == len(loaded.processor.source_vocabulary)
    assert loaded.task.model.target_size == len(loaded.processor.target_vocabulary)


@sequences_only
def test_the_processor_of_another_run_is_refused(run: Path):
    kept = (run / "processor.json").read_bytes()
    others = [runs()[name] / "processor.json" for name in SEQUENCES]
    for other in (path for path in others if path.read_bytes() != kept):
        shutil.copy(other, run / "processor.json")
        with pytest.raises(
            FenchelError,
            match=r"at most \d+ to fit|must fit the config|must (not )?have |requires equal",
        ):
            load(run)


def test_sizes_that_only_one_weight_has_allocate_nothing(run: Path):
    """The vocabulary is often as large as a hidden size that fills the memory."""
    large, weights = 100_000, torch.load(run / "best.pt")
    weights["output.bias"] = torch.zeros(large)
    save_tensors(run / "best.pt", weights)
    edit(run, lambda state: state["recipe"]["task"]["model"].update(hidden_size=large))
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
def test_weights_that_do_not_fit_the_model_are_refused(run: Path, change: Any, message: str):
    weights = torch.load(run / "best.pt")
    weights["output.weight"] = change(weights["output.weight"])
    save_tensors(run / "best.pt", weights)
    with memory_limit(ROOM), pytest.raises(FenchelError, match=message):
        load(run)


def test_weights_of_another_dtype_are_converted(run: Path):
    weights = torch.load(run / "best.pt")
    save_tensors(run / "best.pt", {name: value.half() for name, value in weights.items()})
    assert load(run).model.output.weight.dtype == torch.float32


def test_weights_with_other_names_are_refused(run: Path):
    weights = torch.load(run / "best.pt")
    save_tensors(run / "best.pt", {**weights, "more": torch.zeros(1)})
    with pytest.raises(FenchelError, match=r"'more' must be no such weight, got \(1,\)$"):
        load(run)
    del weights["output.bias"]
    save_tensors(run / "best.pt", weights)
    with pytest.raises(FenchelError, match=r"'output.bias' must be \(.*\), got no such weight$"):
        load(run)


@sequences_only
def test_two_different_embeddings_cannot_be_shared(run: Path):
    if load_run(run).task.model.share_embeddings is False:
        edit(run, lambda state: state["recipe"]["task"]["model"].update(share_embeddings=True))
    weights = torch.load(run / "best.pt")
    weights["output.weight"] = weights["output.weight"] + 1
    save_tensors(run / "best.pt", weights)
    message = r"embedding\S*\.weight and output\.weight are shared and must be equal"
    with pytest.raises(FenchelError, match=message):
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
    ("optimizer", 3, "optimizer must be a dictionary, got 3"),
    ("means", "many", "means must be a dictionary, got 'many'"),
    ("means", {"loss": [1.0, 2.0]}, r"means\.loss must be a sum and a count"),
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


def test_metrics_of_another_type_are_refused(run: Path):
    (run / "metrics.json").write_text("[]")
    with pytest.raises(FenchelError, match=r"metrics\.json must be an object, got \[\]$"):
        use(run)


@pytest.mark.parametrize("text", ["loss\n1\n", "epoch,loss\n1,x\n", "epoch,loss\n1,2,3\n", "\xff"])
def test_a_log_that_is_not_a_table_of_numbers_is_refused(run: Path, text: str):
    (run / "log.csv").write_text(text, encoding="latin-1")
    with pytest.raises(FenchelError, match=r"log\.csv must be a table of numbers"):
        use(run)


def test_an_option_that_a_public_set_does_not_have_is_refused(tmp_path: Path):
    public = PublicSet("multi30k", str(tmp_path), {"setting": "high"})
    with pytest.raises(FenchelError, match="unknown option of multi30k 'setting'"):
        DataSource(public=public).splits(make_recipe("translation"))
