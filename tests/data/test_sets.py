"""The shipped data set, and the public data sets in local folders."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import tarfile
from importlib.resources import files
from pathlib import Path

import pytest

from fenchel import FenchelError
from fenchel.data import check_public_set, public_sets
from fenchel.data.public_set_info import base_folder, public_set_info
from fenchel.data.visual_question_sets import read_visual_question_set
from fenchel.tasks.sequences.headlines import reuters_headlines
from fenchel.tasks.sequences.public_sets import read_public_set, shipped

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
ARCHIVES = {
    "sigmorphon2018": "task1.tar.xz",
    "multi30k": "multi30k_task1_raw.tar.xz",
    "small_parallel_enja": "small_parallel_enja.tar.xz",
    "reuters21578": "reuters21578.jsonl.xz",
}


def test_the_shipped_set_is_small_licensed_and_split():
    folder = files("fenchel.data") / "shipped"
    entries = list(folder.iterdir())
    assert sum(len(entry.read_bytes()) for entry in entries) < 300_000
    assert "CC BY-SA 3.0" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert "UniMorph" in (folder / "README.md").read_text(encoding="utf-8")
    splits = shipped()
    for split, count in (("train", 1000), ("dev", 250), ("test", 250)):
        groups = [example.group for example in splits[split]]
        languages = ("english", "finnish", "spanish", "turkish")
        assert {language: groups.count(language) for language in languages} == dict.fromkeys(
            languages, count
        )
        assert all(e.target and len(e.tags) > 1 and e.has_language for e in splits[split])
        assert len(set(splits[split])) == len(splits[split])
    questions = [{(e.source, e.tags) for e in splits[split]} for split in ("train", "dev", "test")]
    assert questions[0].isdisjoint(questions[1] | questions[2])


def unpacked(name, folder, *, changed=lambda path, lines: lines):
    """A folder with files of the published numbers of lines."""
    data = public_set_info(name)
    for path, count in data.lines.items():
        file = folder / data.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n" * changed(path, count), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["multi30k", "small_parallel_enja", "reuters21578"])
def test_a_folder_that_holds_a_set_is_complete(tmp_path, name):
    result = check_public_set(name, unpacked(name, tmp_path))
    assert result.complete
    inside = tmp_path / public_set_info(name).folder
    assert result.report() == [
        f"{inside}: {len(result.matching)} of {len(result.matching)} files of {name}."
    ]


def test_archives_are_named_as_to_be_unpacked(tmp_path):
    (tmp_path / "raw.tar.xz").touch()
    assert (
        check_public_set("multi30k", tmp_path).report()[1] == "raw.tar.xz must be unpacked first."
    )


def test_missing_and_different_files_are_reported(tmp_path):
    shorter = {"train.ja": 49999}
    unpacked("small_parallel_enja", tmp_path, changed=lambda path, n: shorter.get(path, n))
    plain = tmp_path / "dev.en"
    plain.with_name("dev.en.xz").write_bytes(lzma.compress(plain.read_bytes()))
    plain.unlink()
    (tmp_path / "test.ja").unlink()
    result = check_public_set("small_parallel_enja", tmp_path)
    assert not result.complete
    assert result.missing == ("test.ja",)
    assert result.different == (("train.ja", 50000, 49999),)
    assert "dev.en" in result.matching
    assert result.report() == [
        f"{tmp_path}: 4 of 6 files of small_parallel_enja.",
        "test.ja is missing.",
        "train.ja has 49999 lines instead of 50000.",
    ]


def test_the_counts_of_inflection_are_the_published_ones():
    lines = public_set_info("sigmorphon2018").lines
    counts = {}
    for path, count in lines.items():
        split = path.split("-train-")[-1] if "-train-" in path else path.rsplit("-", 1)[-1]
        counts.setdefault(split, []).append(count)
    assert {split: len(files) for split, files in counts.items()} == {
        "high": 86,
        "medium": 102,
        "low": 103,
        "dev": 103,
        "test": 103,
    }
    assert sum(counts["medium"]) == 95323
    assert all(data.url and data.licence and data.title for data in public_sets().values())


def test_a_wrong_name_or_folder_is_refused(tmp_path):
    with pytest.raises(
        FenchelError, match=r"data set must be one of sigmorphon2018, multi30k, .* got 'wmt'"
    ):
        check_public_set("wmt", tmp_path)
    with pytest.raises(
        FenchelError, match="must be a folder with multi30k, unpacked, got no such folder"
    ):
        check_public_set("multi30k", tmp_path / "nowhere")
    with pytest.raises(FenchelError, match=r"must contain train\.de of multi30k \(https://"):
        read_public_set("multi30k", tmp_path)
    with pytest.raises(FenchelError, match="setting must be high, medium or low, got 'huge'"):
        read_public_set("sigmorphon2018", tmp_path, setting="huge")
    assert base_folder(public_set_info("sigmorphon2018"), tmp_path) == tmp_path


def test_a_set_of_another_task_and_an_unknown_option_are_refused(tmp_path):
    with pytest.raises(FenchelError, match="unknown data set of sequences 'mulan'"):
        read_public_set("mulan", tmp_path)
    with pytest.raises(FenchelError, match="unknown option of multi30k 'setting'"):
        read_public_set("multi30k", tmp_path, setting="high")
    with pytest.raises(FenchelError, match="unknown option of daquar 'setting'"):
        read_visual_question_set("daquar", tmp_path, setting="high")


def test_headlines_are_first_paragraphs_and_titles_in_lower_case(tmp_path):
    lead = "The Bank of\nJapan said  today that it would keep its rate unchanged."
    rows = [
        ("TRAIN", "BANK KEEPS RATE", lead + "\n    More text.\n Reuter\n\x03"),
        ("TRAIN", "BANK KEEPS RATE", lead + "\n    Other text."),
        ("TRAIN", "ACME 1ST QTR NET", "Shr 17 cts vs 13 cts"),
        ("TRAIN", None, lead),
        ("TRAIN", "ASKED IN TEST", "One two three four five six seven eight nine ten. REUTER"),
        ("TEST", "TEN WORDS", "One two three four five six seven eight nine ten."),
        ("NOT-USED", "ELEVEN", "One two three four five six seven eight nine ten eleven"),
    ]
    path = tmp_path / "reuters21578.jsonl"
    objects = (dict(zip(("lewis", "title", "body"), row, strict=True)) for row in rows)
    path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    splits = reuters_headlines(path)
    (example,) = splits["train"]
    assert example.source == " ".join(lead.lower().split())
    assert example.target == "bank keeps rate"
    assert [e.target for e in splits["test"] + splits["dev"]] == ["ten words", "eleven"]
    assert read_public_set("reuters21578", tmp_path) == splits
    path.write_text(
        '{"lewis": "OTHER", "title": "a", "body": "' + "b " * 12 + '"}', encoding="utf-8"
    )
    with pytest.raises(
        FenchelError, match=r":1: lewis must be one of TRAIN, NOT-USED, TEST, got 'OTHER'"
    ):
        reuters_headlines(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_the_official_files_are_what_the_facts_say(tmp_path, name):
    archive = SHARED / name / ARCHIVES[name]
    if not archive.exists():
        pytest.skip(f"the official files of {name} are not here: {archive}")
    if archive.name.endswith(".tar.xz"):
        with tarfile.open(archive) as tar:
            tar.extractall(tmp_path, filter="data")
        folder = tmp_path
    else:
        folder = archive.parent
    assert check_public_set(name, folder).report() == [
        f"{base_folder(public_set_info(name), folder)}: {len(public_set_info(name).lines)} of "
        f"{len(public_set_info(name).lines)} files of {name}."
    ]
    if name != "sigmorphon2018":
        sizes = {split: len(examples) for split, examples in read_public_set(name, folder).items()}
        assert (
            sizes
            == {
                "multi30k": {"train": 29000, "dev": 1014, "test": 1000},
                "small_parallel_enja": {"train": 50000, "dev": 500, "test": 500},
                "reuters21578": {"train": 10557, "dev": 668, "test": 4312},
            }[name]
        )


def test_the_library_loads_no_data_code_and_the_data_code_no_extras():
    script = (
        "import sys, fenchel; assert 'fenchel.data' not in sys.modules\n"
        "import fenchel.data\n"
        "loaded = {'tokenizers', 'lightning', 'rich', 'typer'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
