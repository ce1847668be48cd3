"""Bad lines of data files are skipped and counted, if that is wanted."""

from __future__ import annotations

import pytest

from fenchel import FenchelError
from fenchel.data.bad_items import SHOWN, BadItems
from fenchel.data.lines import read_lines
from fenchel.data.texts import Document, iterate_labelled_texts
from fenchel.tasks.language_model.texts import iterate_texts
from fenchel.tasks.sequences.inflection import iterate_inflection
from fenchel.tasks.sequences.parallel import iterate_parallel, read_parallel
from tests.data.test_records import write

NOT_UTF8 = b"\xff\n"
FILES = {
    "documents": (
        lambda path, **options: iterate_labelled_texts(path, **options),
        b"good\ta film\n" + NOT_UTF8 + b"only one column\n\ngood\t \nbad\ta plot\n",
    ),
    "inflection": (
        lambda path, **options: iterate_inflection(path, need_targets=True, **options),
        b"see\tsaw\tV\n" + NOT_UTF8 + b"see\n\nsee\tsaw\t;\ngo\twent\tV\n",
    ),
    "pairs": (
        lambda path, **options: iterate_parallel(path, need_targets=True, **options),
        b"eins\tone\n" + NOT_UTF8 + b"zwei\n\n\tthree\nvier\tfour\n",
    ),
    "objects": (
        lambda path, **options: iterate_labelled_texts(path, **options),
        b'{"label": "good", "text": "a film"}\n'
        + NOT_UTF8
        + b'[1]\n\n{"label": "bad"}\n{"label": "bad", "text": "a plot"}\n',
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_lines_are_skipped_and_counted(tmp_path, name):
    read, content = FILES[name]
    path = tmp_path / ("a.jsonl" if name == "objects" else "a.tsv")
    path.write_bytes(content)
    with pytest.raises(FenchelError, match=r":2: text must be UTF-8"):
        list(read(path))
    bad = BadItems(skip=True)
    found = list(read(path, bad=bad))
    assert len(found) == 2
    assert None not in found
    assert bad.count == 4
    assert [message.split(":")[1] for message in bad.messages] == ["2", "3", "4"]
    assert bad.summary.startswith(f"4 bad items were skipped: {path}:2: text must be UTF-8")
    assert bad.summary.endswith("; and 1 more")


@pytest.mark.parametrize("name", FILES)
def test_skipped_lines_keep_their_row_among_blank_ones(tmp_path, name):
    """So that predictions stay beside their lines."""
    read, content = FILES[name]
    path = tmp_path / ("a.jsonl" if name == "objects" else "a.tsv")
    path.write_bytes(content)
    bad = BadItems(skip=True)
    found = list(read(path, keep_blank=True, bad=bad))
    assert [example is None for example in found] == [False, True, True, True, True, False]
    assert bad.count == 3  # the blank line is none


def test_good_files_have_no_bad_items(tmp_path):
    bad = BadItems(skip=True)
    path = write(tmp_path, "a.tsv", "good\ta film", "bad\ta plot")
    assert list(iterate_labelled_texts(path, bad=bad)) == list(iterate_labelled_texts(path))
    assert (bad.count, bad.summary) == (0, "")


def test_a_bad_first_line_is_skipped(tmp_path):
    path = write(tmp_path, "a.tsv", "one column", "good\ta film")
    bad = BadItems(skip=True)
    assert list(iterate_labelled_texts(path, bad=bad)) == [Document("a film", "good", f"{path}:2")]
    assert bad.messages == [
        f"{path}:1: line must have the columns label<tab>text, got 1 column: 'one column'"
    ]


def test_a_header_without_a_column_is_always_an_error(tmp_path):
    path = write(tmp_path, "a.tsv", "label\tbody", "good\ta film")
    with pytest.raises(FenchelError, match="header must have the columns"):
        list(iterate_labelled_texts(path, columns={"text": "words"}, bad=BadItems(skip=True)))


def test_lines_that_are_too_long_are_skipped_to_their_end(tmp_path, monkeypatch):
    monkeypatch.setattr("fenchel.data.lines.MAX_BYTES", 8)
    path = write(tmp_path, "a", "short", "x" * 100, "y" * 50)
    with path.open("a") as file:
        file.write("end\n")
    bad = BadItems(skip=True)
    assert list(iterate_texts(path, bad=bad)) == ["short", "end"]
    assert bad.count == 2


def test_unreadable_first_lines_are_skipped(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(NOT_UTF8 + b"a\n" + NOT_UTF8)
    bad = BadItems(skip=True)
    assert [text for _, text in read_lines(path, bad) if text] == ["a"]
    assert bad.count == 2


def test_a_file_of_unreadable_lines_alone_names_them(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_bytes(b"a\xff\n")
    message = "words.tsv must have at least one line that is not blank; 1 bad item was skipped"
    with pytest.raises(FenchelError, match=message):
        read_lines(path, BadItems(skip=True))


def test_of_parallel_files_pairs_are_skipped(tmp_path):
    sources = write(tmp_path, "a.de", "eins", "", "drei", "vier")
    targets = write(tmp_path, "a.en", "one", "two", "", "four")
    bad = BadItems(skip=True)
    found = read_parallel(sources, targets, bad=bad)
    assert [(each.source, each.target) for each in found] == [("eins", "one"), ("vier", "four")]
    assert bad.messages == [
        f"{sources}:2: line must not be blank",
        f"{targets}:3: line must not be blank",
    ]


def test_a_summary_names_the_first_few():
    bad = BadItems(skip=True)
    for number in range(10):
        bad.add(FenchelError(f"a:{number}: no"))
    assert len(bad.messages) == SHOWN
    assert bad.summary == "10 bad items were skipped: a:0: no; a:1: no; a:2: no; and 7 more"
