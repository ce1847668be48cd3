"""The files of a person: TSV and JSONL, one language or many, pairs in one file or in two."""

from __future__ import annotations

import json

import pytest

from fenchel import FenchelError
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.inflection import read_inflection
from fenchel.tasks.sequences.parallel import read_parallel


def write(folder, name, *lines):
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_inflection_is_lemma_form_tags_with_the_language_of_the_file_name(tmp_path):
    path = write(tmp_path, "german-train-medium", "Haus\tHäuser\tN;NOM;PL", "gehen\tging \tV;PST")
    assert read_inflection(path) == [
        Example("Haus", "Häuser", ("german", "N", "NOM", "PL"), "german"),
        Example("gehen", "ging ", ("german", "V", "PST"), "german"),
    ]


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("middle-low-german-covered-test", "middle-low-german"),
        ("tr.tsv", "tr"),
        ("turkish_dev.tsv", "turkish"),
        ("train.tsv", ""),
        ("dev", ""),
    ],
)
def test_the_file_name_tells_the_language_before_the_split(tmp_path, name, language):
    (example,) = read_inflection(write(tmp_path, name, "a\tb\tV"))
    assert example.group == language
    assert example.tags == ((language, "V") if language else ("V",))


def test_a_column_or_an_argument_says_the_language(tmp_path):
    path = write(tmp_path, "tr.tsv", "a\tb\tV\tfinnish", "c\td\tN\tturkish")
    assert [example.group for example in read_inflection(path)] == ["finnish", "turkish"]
    assert {example.group for example in read_inflection(path, "karelian")} == {"karelian"}
    assert {example.tags[0] for example in read_inflection(path, "")} == {"V", "N"}


def test_forms_may_be_missing_where_they_are_predicted(tmp_path):
    path = write(tmp_path, "words.tsv", "Haus\tN;PL", "gehen\tV;PST")
    assert [example.target for example in read_inflection(path)] == [None, None]
    with pytest.raises(
        FenchelError, match=r":1: line must have the columns .*lemma<tab>form<tab>tags, got 2"
    ):
        read_inflection(path, need_targets=True)


def test_several_files_are_one_set_in_the_order_given(tmp_path):
    paths = [write(tmp_path, f"{name}.tsv", "a\tb\tV") for name in ("tr", "de")]
    assert [example.group for example in read_inflection(paths)] == ["tr", "de"]
    with pytest.raises(
        FenchelError, match=r"files must be different, got .*tr\.tsv more than once"
    ):
        read_inflection([*paths, paths[0]])
    with pytest.raises(FenchelError, match="at least one file"):
        read_inflection([])


def test_a_first_line_may_name_the_columns_in_any_order(tmp_path):
    path = write(tmp_path, "de.tsv", "lemma\ttags\tform", "Haus\tN;PL\tHäuser")
    assert read_inflection(path) == [Example("Haus", "Häuser", ("de", "N", "PL"), "de")]
    assert read_parallel(write(tmp_path, "text", "source")) == [Example("source")]
    with pytest.raises(FenchelError, match=r":1: header must be followed by at least one line"):
        read_parallel(write(tmp_path, "empty.tsv", "source\ttarget"))


@pytest.mark.parametrize("names", ["Lemma\tForm\tTags", " lemma\tform \ttags"])
def test_names_of_columns_may_be_written_large(tmp_path, names):
    path = write(tmp_path, "de.tsv", names, "Haus\tHäuser\tN;PL")
    assert read_inflection(path) == [Example("Haus", "Häuser", ("de", "N", "PL"), "de")]


@pytest.mark.parametrize("names", ["lemma\tform", "form\ttags\tid", "lemma\ttags\tlanguage"])
def test_a_header_must_have_the_required_columns(tmp_path, names):
    path = write(tmp_path, "de.tsv", names, *["\t".join("abcd"[: names.count("\t") + 1])] * 2)
    message = r"de\.tsv:1: header must have the columns lemma, form, tags, got '(lemma|form)"
    with pytest.raises(FenchelError, match=message):
        read_inflection(path, need_targets=True)


def test_json_lines_have_the_same_names(tmp_path):
    rows = (
        {"lemma": "Haus", "form": "Häuser", "tags": "N;PL"},
        {"lemma": "ev", "tags": ["N", "PL"], "language": "tr", "comment": 1},
    )
    path = write(tmp_path, "de-dev.jsonl", *map(json.dumps, rows))
    assert read_inflection(path) == [
        Example("Haus", "Häuser", ("de", "N", "PL"), "de"),
        Example("ev", None, ("tr", "N", "PL"), "tr"),
    ]


def test_pairs_are_columns_fields_or_equal_lines_of_two_files(tmp_path):
    pairs = [Example("ein Hund", "a dog"), Example("zwei", "two")]
    columns = write(tmp_path, "a.tsv", *(f"{p.source}\t{p.target}" for p in pairs))
    rows = ({"target": p.target, "source": p.source} for p in pairs)
    fields = write(tmp_path, "a.jsonl", *map(json.dumps, rows))
    sources = write(tmp_path, "a.de", *(p.source for p in pairs))
    targets = write(tmp_path, "a.en", *(str(p.target) for p in pairs))
    assert read_parallel(columns) == read_parallel(fields) == pairs
    assert read_parallel(sources, targets) == pairs
    assert read_parallel(sources) == [Example("ein Hund"), Example("zwei")]


def test_the_language_may_stand_in_a_named_column_without_forms(tmp_path):
    path = write(tmp_path, "asked.tsv", "lemma\ttags\tlanguage", "see\tV;PST\tenglish")
    assert read_inflection(path) == [Example("see", None, ("english", "V", "PST"), "english")]
    unnamed = write(tmp_path, "english.tsv", "see\tsaw\tV;PST")
    assert read_inflection(unnamed)[0].target == "saw"


def test_letters_written_as_two_surrogates_are_whole(tmp_path):
    path = write(tmp_path, "one.jsonl", r'{"source": "\ud83d\ude00"}')
    assert read_parallel(path) == [Example("\U0001f600")]


BAD_INFLECTION = [
    ("de.tsv", "a\tb\tV|c d V", ":2: line must have the columns lemma<tab>form<tab>tags, got 1"),
    ("de.tsv", "a\tb\tV|c\tV", ":2: line must have the columns .* got 2 columns"),
    ("de.tsv", "a\tb\tV||c\td\tV", ":2: line must not be blank"),
    ("de.tsv", "a\tb\tc\td\te", ":1: .*columns .*lemma<tab>form<tab>tags or lemma<tab>tags, got 5"),
    ("de.tsv", "a\t \tV", ":1: form must not be blank, got ' '"),
    ("de.tsv", "a\tb\tV;;PL", ":1: tags must not be blank, got 'V;;PL'"),
    ("de.jsonl", '{"lemma": "a", "tags": "V"|', ":1: line must be a JSON object"),
    ("de.jsonl", "[" * 100_000, ":1: line must be a JSON object"),
    ("de.jsonl", '{"lemma": ' + "9" * 5000 + "}", ":1: line must be a JSON object"),
    ("de.jsonl", '["a", "V"]', ":1: line must be a JSON object, got "),
    ("de.jsonl", r'{"lemma": "\ud800a", "tags": "V"}', ":1: .* JSON object, .* surrogate pair"),
    ("de.jsonl", '{"lemma": "a", "form": "b"}', ":1: object must have the key 'tags', got"),
    ("de.jsonl", '{"lemma": 3, "tags": "V"}', ":1: lemma must be a text, got 3"),
    ("de.jsonl", '{"lemma": "a", "tags": [1]}', ":1: tags must be a text or a list of texts"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_INFLECTION)
def test_a_malformed_line_is_named(tmp_path, name, content, message):
    path = write(tmp_path, name, *content.split("|"))
    with pytest.raises(FenchelError, match=message) as error:
        read_inflection(path)
    assert str(path) in str(error.value)


def test_two_files_of_pairs_are_not_taken_for_sources_and_targets(tmp_path):
    first = write(tmp_path, "first.txt", "ein Hund\ta dog", "zwei\ttwo")
    for second in (["drei\tthree"], ["drei\tthree", "vier\tfour"]):
        with pytest.raises(FenchelError, match=r"first\.txt:1: .* must not have columns"):
            read_parallel(first, write(tmp_path, "second.txt", *second))
    tabbed = write(tmp_path, "a.de", "ein\tHund", "zwei")
    assert read_parallel(tabbed, tabbed)[0] == Example("ein\tHund", "ein\tHund")


def test_malformed_pairs_are_named(tmp_path):
    one = write(tmp_path, "one.de", "a")
    two = write(tmp_path, "two.en", "a", "b")
    with pytest.raises(
        FenchelError, match=r"one\.de and .*two\.en must have equally many lines, got 1 and 2"
    ):
        read_parallel(one, two)
    with pytest.raises(FenchelError, match=r"gap\.en:2: line must not be blank"):
        read_parallel(write(tmp_path, "three.de", *"abc"), write(tmp_path, "gap.en", "a", " ", "b"))
    with pytest.raises(
        FenchelError, match=":1: line must have the columns source<tab>target, got 1"
    ):
        read_parallel(one, need_targets=True)
    null = write(tmp_path, "null.jsonl", '{"source": "a", "target": null}')
    assert read_parallel(null) == [Example("a")]
    with pytest.raises(FenchelError, match=":1: target must not be null"):
        read_parallel(null, need_targets=True)
