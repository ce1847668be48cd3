"""One reader for the files of every task: TSV and JSONL, plain or compressed."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys

import pytest

from fenchel import FenchelError
from fenchel.data.records import read_records

NLI = ("label", "premise", "hypothesis")
ROW = {"label": "neutral", "premise": "A dog runs.", "hypothesis": "It is fast."}
COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def write(folder, name, *lines):
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path, *args, **kwargs):
    return [record.fields for record in read_records(path, *args, **kwargs)]


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "neutral\tA dog runs.\tIt is fast."),
        ("a.txt", "hypothesis\tid\tlabel\tpremise\nIt is fast.\t7\tneutral\tA dog runs."),
        ("a.jsonl", json.dumps(ROW | {"id": 7})),
    ],
)
def test_every_format_gives_the_same_records(tmp_path, name, content, suffix):
    path = tmp_path / (name + suffix)
    path.write_bytes(COMPRESSORS[suffix](content.encode()))
    assert read(path, NLI) == [ROW]


def test_standard_input_is_tsv_or_jsonl(monkeypatch):
    for content in ("\t".join(ROW.values()), "\n " + json.dumps(ROW)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        assert list(filter(None, read("-", NLI, keep_blank=True))) == [ROW]


def test_optional_fields_may_be_left_out(tmp_path):
    question = {name: ROW[name] for name in ("premise", "hypothesis")}
    files = (
        write(tmp_path, "bare.tsv", "\t".join(question.values())),
        write(tmp_path, "named.tsv", "\t".join(question), "\t".join(question.values())),
        write(tmp_path, "a.jsonl", json.dumps(question)),
    )
    for path in files:
        assert read(path, NLI, required=tuple(question)) == [question]
        with pytest.raises(FenchelError, match=r":1: .* must have the (columns|key).*label"):
            read(path, NLI)


def test_a_line_whose_words_name_one_field_is_not_a_header(tmp_path):
    path = write(tmp_path, "words.tsv", "source\tla source", "text\tle texte")
    assert read(path, ("source", "target"))[0] == {"source": "source", "target": "la source"}


@pytest.mark.parametrize("columns", [{"label": "gold", "hypothesis": "label"}, {"label": "Gold"}])
def test_columns_may_have_other_names(tmp_path, columns):
    names = {name: columns.get(name, name) for name in NLI}
    row = {names[name]: ROW[name] for name in NLI} | {"id": "7"}
    table = write(tmp_path, "a.tsv", "\t".join(row).upper(), "\t".join(row.values()))
    objects = write(tmp_path, "a.jsonl", json.dumps(row))
    assert read(table, NLI, columns=columns) == read(objects, NLI, columns=columns) == [ROW]


def test_columns_must_be_those_of_fields_and_of_the_file(tmp_path):
    path = write(tmp_path, "a.tsv", "\t".join(NLI), "\t".join(ROW.values()))
    with pytest.raises(FenchelError, match="unknown field 'premiss', did you mean 'premise'"):
        read_records(path, NLI, columns={"premiss": "a"})
    with pytest.raises(FenchelError, match="fields must be in different columns, got"):
        read_records(path, NLI, columns={"premise": "label"})
    message = r"a\.tsv:1: header must have the columns gold, premise, hypothesis, got 'label"
    with pytest.raises(FenchelError, match=message):
        read_records(path, NLI, columns={"label": "gold"})
    bare = write(tmp_path, "bare.tsv", "\t".join(ROW.values()))
    with pytest.raises(FenchelError, match=r":1: header must have .* got 'neutral"):
        read_records(bare, NLI, columns={"label": "label"})


def test_a_header_must_not_name_a_field_twice(tmp_path):
    path = write(tmp_path, "a.tsv", "source\ttarget\tTarget\tid\tid", "a\tb\tc\td\te")
    with pytest.raises(FenchelError, match=r"a\.tsv:1: header must have one column target"):
        read(path, ("source", "target"))


def test_null_is_not_a_value(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"source": "a", "target": null}')
    with pytest.raises(FenchelError, match=r"a\.jsonl:1: target must not be null$"):
        read(path, ("source", "target"))
    (record,) = read_records(path, ("source", "target"), ("source",))
    assert record.text("source") == record.optional_text("source") == "a"
    assert record.optional_text("target") is None
    with pytest.raises(FenchelError, match=r"a\.jsonl:1: target must be a text, got null$"):
        record.text("target")


def test_labels_are_texts_or_whole_numbers(tmp_path):
    path = write(tmp_path, "a.jsonl", *(json.dumps({"label": label}) for label in (1, "b", True)))
    number, text, boolean = read_records(path, ["label"])
    assert (number.label("label"), text.label("label")) == ("1", "b")
    with pytest.raises(FenchelError, match=r"a\.jsonl:3: label must be a text, got True"):
        boolean.label("label")


def test_missing_keys_are_named_with_those_that_came(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"src": "a", "tgt": "b"}', "{}")
    message = r"a\.jsonl:1: object must have the key 'source', got 'src, tgt'"
    message += r" \(--columns FIELD=NAME maps other names\)$"
    with pytest.raises(FenchelError, match=message):
        read(path, ("source", "target"))
    with pytest.raises(FenchelError, match=r":2: .* the key 'src', got an empty object"):
        read(path, ("source", "target"), columns={"source": "src", "target": "tgt"})


FILES_WITH_GAPS = {
    "bare.tsv": ("a\tb", "", " \t ", "c\td", ""),
    "named.tsv": ("source\ttarget", "", "c\td", ""),
    "late.tsv": ("", "source\ttarget", "c\td"),
    "a.jsonl": ("", '{"source": "a", "target": "b"}', "", '{"source": "c", "target": "d"}', ""),
}


@pytest.mark.parametrize("name", FILES_WITH_GAPS)
def test_blank_lines_are_refused_or_kept(tmp_path, name):
    lines = FILES_WITH_GAPS[name]
    path = write(tmp_path, name, *lines)
    blank = [number for number, line in enumerate(lines[:-1], start=1) if not line.strip()]
    with pytest.raises(FenchelError, match=f":{blank[0]}: line must not be blank"):
        read(path, ("source", "target"))
    records = list(read_records(path, ("source", "target"), keep_blank=True))
    assert [record.number for record in records if record.blank] == blank
    assert records[-1].fields == {"source": "c", "target": "d"}
    header = [number for number, line in enumerate(lines, start=1) if line.startswith("source")]
    numbers = [record.number for record in records]
    last = max(number for number, line in enumerate(lines, start=1) if line.strip())
    assert numbers == [number for number in range(1, last + 1) if number not in header]


def test_a_header_needs_a_line_below(tmp_path):
    path = write(tmp_path, "a.tsv", "", "source\ttarget", "")
    with pytest.raises(FenchelError, match=r"a\.tsv:2: header must be followed by"):
        read(path, ("source", "target"), keep_blank=True)
