"""Examples with several labels are read from ARFF, svmlight, CSV, TSV and JSONL files."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from fenchel import FenchelError
from fenchel.data.arff import read_label_list
from fenchel.data.bad_items import BadItems
from fenchel.data.multilabel import iterate_multilabel
from fenchel.data.multilabel_example import MultilabelExample

HEADER = """% a comment
@relation 'two labels'
@attribute width numeric
@ATTRIBUTE 'the height' REAL
@attribute colour {red, 'dark blue', green}
@attribute Sky {0,1}
@attribute "Cat's" {0, 1}

@data
"""
XML = """<?xml version="1.0"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="Sky"></label>
<label name="Cat's"><label name="{}"/></label>
</labels>
"""


@pytest.fixture
def folder(tmp_path):
    """A function that writes files into a folder, and returns the path of the first."""

    def write(**files):
        paths = []
        for name, text in files.items():
            path = tmp_path / name.replace("__", "-").replace("_", ".")
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return paths[0]

    return write


def simple_xml(*labels):
    return "<labels>\n" + "\n".join(f'<label name="{each}"/>' for each in labels) + "\n</labels>"


def read(path, **options):
    return list(iterate_multilabel(path, **options))


def dense(example: MultilabelExample) -> dict[str, float]:
    features = example.features
    assert not isinstance(features, str)
    return dict(zip(features.columns, features.values.tolist(), strict=True))


def test_an_arff_file_has_its_labels_in_an_xml_file(folder):
    rows = "1, -2.5e1, red, 0, 1\n\n0, 4, 'dark blue', 1, 1\n"
    xml = simple_xml("Sky", "Cat's")
    path = folder(set__train_arff=HEADER + rows, set_xml=xml, se_xml=simple_xml("width"))
    first, second = read(path)
    columns = ("width", "the height", "colour=red", "colour=dark blue", "colour=green")
    assert dense(first) == dict(zip(columns, [1.0, -25.0, 1.0, 0.0, 0.0], strict=True))
    assert dense(second) == dict(zip(columns, [0.0, 4.0, 0.0, 1.0, 0.0], strict=True))
    assert (first.labels, second.labels) == (("Cat's",), ("Sky", "Cat's"))


def test_sparse_rows_have_the_first_value_where_they_have_none(folder):
    path = folder(
        a_arff=HEADER + "{0 2,4 1}\n{2 'dark blue', 3 1}\n", a_xml=simple_xml("Sky", "Cat's")
    )
    first, second = read(path)
    assert dense(first) == {"width": 2.0, "colour=red": 1.0}
    assert dense(second) == {"colour=dark blue": 1.0}
    assert (first.labels, second.labels) == (("Cat's",), ("Sky",))


def test_labels_may_be_named_or_counted(folder):
    named = folder(a_arff=HEADER + "1, 2, red, 0, 1\n")
    assert read(named, label_source=["Cat's"])[0].labels == ("Cat's",)
    counted = folder(b_arff=HEADER.replace("two labels", "set: -C -2") + "1, 2, red, 1, 1\n")
    assert read(counted)[0].labels == ("Sky", "Cat's")


def test_ignored_columns_are_left_out(folder):
    path = folder(a_arff=HEADER + "1, 2, red, 0, 1\n", a_xml=simple_xml("Sky", "Cat's"))
    assert dense(read(path, ignored=["colour", "width"])[0]) == {"the height": 2.0}


def test_label_lists_may_be_nested(folder):
    path = folder(a_xml=XML.format("Tail"))
    assert read_label_list(path) == {"Sky": f"{path}:3", "Cat's": f"{path}:4", "Tail": f"{path}:4"}


def test_svmlight_lines_have_labels_and_columns(folder):
    path = folder(a_svm="# made by hand\n3,1 2:0.5 10:-1 # a note\n2 qid:7 1:1\n\n1,3\n")
    found = read(path)
    assert [each.labels for each in found] == [("3", "1"), ("2",), ("1", "3")]
    assert [dense(each) for each in found] == [{"2": 0.5, "10": -1.0}, {"1": 1.0}, {}]
    unlabelled = folder(b_svm="2:0.5 10:-1\n3,1 2:0.5\n")
    assert [dense(each) for each in read(unlabelled, need_targets=False)] == [
        {"2": 0.5, "10": -1.0},
        {"2": 0.5},
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_files_have_columns_of_labels_or_one_column(folder, delimiter):
    table = [["x", "sky", "y y", "cat"], ["1", "0", "-2", "1"], ["0.5", "1", "3", "1"]]
    text = "\n".join(delimiter.join(row) for row in table) + "\n"
    found = read(folder(a_csv=text), label_source=["sky", "cat"])
    assert [each.labels for each in found] == [("cat",), ("sky", "cat")]
    assert [dense(each) for each in found] == [{"x": 1.0, "y y": -2.0}, {"x": 0.5, "y y": 3.0}]
    one = f'x{delimiter}labels\n1{delimiter}"sky, cat"\n2{delimiter}dog\n'
    found = read(folder(b_csv=one))
    assert [each.labels for each in found] == [("sky", "cat"), ("dog",)]
    renamed = folder(c_csv=one.replace("labels", "tags"))
    assert read(renamed, columns={"labels": "tags"})[0].labels == ("sky", "cat")


def test_texts_have_labels_between_commas_or_in_a_list(folder):
    rows = [(("grain", "wheat"), "Wheat rose."), (("oil",), "Up, up.")]
    table = "".join(f"{', '.join(labels)}\t{text}\n" for labels, text in rows)
    objects = "".join(json.dumps({"labels": labels, "text": text}) + "\n" for labels, text in rows)
    expected = [MultilabelExample(text, labels) for labels, text in rows]
    assert read(folder(a_tsv=table)) == read(folder(a_jsonl=objects)) == expected
    assert read(folder(b_tsv="Wheat rose.\n\nUp.\n"), need_targets=False, keep_blank=True) == [
        MultilabelExample("Wheat rose."),
        None,
        MultilabelExample("Up."),
    ]


def test_compressed_files_are_read(folder, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"x,labels\n1,sky\n"))
    assert read(path)[0].labels == ("sky",)


def test_labels_are_not_needed_where_they_are_predicted(folder):
    files = [
        folder(a_arff=HEADER + "1, 2, red, 0, 0\n", a_xml=simple_xml("Sky", "Cat's")),
        folder(b_csv="x,y\n1,2\n"),
        folder(c_svm="1:1\n"),
        folder(d_tsv="a text\n"),
    ]
    assert [read(path, need_targets=False)[0].labels for path in files] == [None] * 4


BAD_HEADERS = {
    "unknown type": (
        HEADER.replace("numeric", "date 'yyyy'"),
        r"a\.arff:3: type of attribute 'width' must be numeric or a list of values, got \"date",
    ),
    "label missing": (
        HEADER.replace("Sky", "Sea"),
        r"a\.xml:2: label must be an attribute of .*a\.arff: unknown label 'Sky'",
    ),
    "label not binary": (
        HEADER.replace("Sky {0,1}", "Sky numeric"),
        r"a\.arff:6: label 'Sky' must be \{0,1\}",
    ),
    "wrong count": (
        HEADER.replace("two labels", "set: -C 3"),
        r"a\.arff must have 3 labels \(-C\), got 2 labels",
    ),
    "same name": (
        HEADER.replace("'the height'", "width"),
        r"a\.arff:4: attributes must have different names, got 'width' in lines 3 and 4",
    ),
    "no data": (
        HEADER.replace("@data", "% data"),
        r"a\.arff:10: header must have @relation, @attribute and @data, got '1, 2",
    ),
    "nonsense": (
        HEADER.replace("@ATTRIBUTE", "@ATRIBUTE"),
        r"a\.arff:4: header must have @relation, @attribute and @data, got .@ATRIBUTE",
    ),
    "unclosed list": (
        HEADER.replace("'dark blue'", "'dark blue"),
        r"a\.arff:5: values of attribute 'colour': values must be separated by commas",
    ),
}


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_a_header_that_lies_is_named(folder, name):
    header, message = BAD_HEADERS[name]
    path = folder(a_arff=header + "1, 2, red, 0, 1\n", a_xml=simple_xml("Sky", "Cat's"))
    with pytest.raises(FenchelError, match=message):
        read(path)


def test_a_file_that_ends_in_its_header_is_named(folder):
    path = folder(a_arff="@relation x\n@attribute width numeric\n")
    with pytest.raises(FenchelError, match=r"a\.arff must have a line @data"):
        read(path)


def test_a_label_list_that_is_missing_or_broken_is_named(folder):
    path = folder(a_arff=HEADER + "1, 2, red, 0, 1\n")
    with pytest.raises(FenchelError, match=r"a\.arff must have an XML file with its labels beside"):
        read(path)
    for text, message in (
        ("<labels>\n<label name='a'></labels>", r"a\.xml:2: file must be XML, got: mismatched tag"),
        ("<labels></labels>", r"a\.xml must have at least one label, got none"),
        ("<labels>\n<label/></labels>", r"a\.xml:2: label must have a name"),
        (simple_xml("Sky", "Sky"), r"a\.xml:3: labels must be unique, got 'Sky' twice"),
    ):
        folder(a_xml=text)
        with pytest.raises(FenchelError, match=message):
            read(path)


BAD_ROWS = {
    "arff": [
        ("1, 2, red, 0", r"row must have 5 values, one per attribute, got 4"),
        ("1, x, red, 0, 1", r"attribute 'the height' must be a number, got 'x'"),
        ("nan, 2, red, 0, 1", r"attribute 'width' must be finite, got nan"),
        ("?, 2, red, 0, 1", r"attribute 'width' must have a value, got \?"),
        (
            "1, 2, black, 0, 1",
            r"attribute 'colour' must be one of red, dark blue, green, got 'black'",
        ),
        ("1, 2, red, 2, 1", r"attribute 'Sky' must be 0 or 1, got '2'"),
        ("1, 2, red, 0, 0", r"example must have at least one label, got none"),
        ("{0 1, 9 1}", r"number of an attribute must be below 5, got 9"),
        ("{0 1, 0 2}", r"attribute 0 must occur once in a row"),
        ("{0 1, width 1}", r"entry of a sparse row must be the number of an attribute and a value"),
        ("{0 1", r"sparse row must end with }"),
    ],
    "csv": [
        ("1,2,0", r"line must have 4 columns, as the header, got 3"),
        ("1,,0,1", r"column 'y' must be a number, got ''"),
        ("1,inf,0,1", r"column 'y' must be finite, got inf"),
        ("1,2,yes,1", r"column 'sky' must be 0 or 1, got 'yes'"),
        ("1,2,0,0", r"example must have at least one label, got none"),
        ('1,"2,0,1', r"line must be CSV, got: unexpected end of data"),
    ],
    "svm": [
        ("1 x:2", r"entry must be the number of a column:value, got 'x:2'"),
        ("1 2:x", r"column 2 must be a number, got 'x'"),
        ("1 2:nan", r"column 2 must be finite, got nan"),
        ("1 2:1 2:3", r"column 2 must occur once in a line"),
        ("2:1", r"example must have at least one label, got none"),
    ],
    "tsv": [
        ("only a text", r"line must have the columns labels<tab>text, got 1 column"),
        ("sky\t ", r"text must not be blank"),
        (" , \ta text", r"example must have at least one label, got none"),
        ("", r"line must not be blank"),
    ],
    "jsonl": [
        ('{"labels": [0.5], "text": "x"}', r"labels must be texts, got \[0\.5\]"),
        ('{"labels": [], "text": "x"}', r"example must have at least one label, got none"),
        ("[1]", r"line must be a JSON object, got '\[1\]'"),
    ],
}
GOOD_ROWS = {
    "arff": (HEADER, "1, 2, red, 0, 1"),
    "csv": ("x,y,sky,cat\n", "1,2,0,1"),
    "svm": ("", "1 2:1"),
    "tsv": ("", "sky\ta text"),
    "jsonl": ("", '{"labels": ["sky"], "text": "x"}'),
}


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [(kind, row, message) for kind, rows in BAD_ROWS.items() for row, message in rows],
)
def test_a_bad_row_is_named_or_skipped(folder, kind, row, message):
    header, good = GOOD_ROWS[kind]
    number = 2 + header.count("\n")
    path = folder(
        **{f"a_{kind}": header + f"{good}\n{row}\n{good}\n"}, a_xml=simple_xml("Sky", "Cat's")
    )
    options = {"label_source": ["sky", "cat"]} if kind == "csv" else {}
    with pytest.raises(FenchelError, match=rf"a\.{kind}:{number}: {message}"):
        read(path, **options)
    bad = BadItems(skip=True)
    found = read(path, bad=bad, **options)
    assert len(found) == 2
    assert bad.count == 1
    assert bad.summary.startswith(f"1 bad item was skipped: {path}:{number}: ")


def test_a_csv_header_without_labels_is_named(folder):
    with pytest.raises(FenchelError, match=r"a\.csv:1: header must have the column labels, or the"):
        read(folder(a_csv="x,y\n1,2\n"))
    with pytest.raises(
        FenchelError, match=r"b\.csv:1: header must have every label: unknown label"
    ):
        read(folder(b_csv="x,skye\n1,0\n"), label_source=["sky"])
    with pytest.raises(
        FenchelError, match=r"c\.csv:1: header must name every column once, got 'x'"
    ):
        read(folder(c_csv="x,x,labels\n1,0,a\n"))


def test_numbers_are_float64(folder):
    (example,) = read(folder(a_svm="1 1:0.1\n"))
    assert not isinstance(example.features, str)
    assert example.features.values.dtype == np.float64
