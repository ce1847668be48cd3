"""Labelled texts are read from files, split into words and numbered."""

from __future__ import annotations

import json

import pytest
import torch

from fenchel import FenchelError
from fenchel.data.texts import Document, SentencePair, TextProcessor, iterate_labelled_texts
from fenchel.data.vocabulary import PAD, UNK

DOCUMENTS = [
    Document("A superb film!", "good"),
    Document("A dull film.", "bad"),
    Document("Dull, dull.", "bad"),
]


def write(folder, name, *lines):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_tables_and_objects_hold_the_same_documents(tmp_path):
    rows = [("good", "A superb film!"), ("0", "dull")]
    tables = [
        write(tmp_path, "bare.tsv", *("\t".join(row) for row in rows)),
        write(tmp_path, "named.tsv", "text\tlabel", *("\t".join(row[::-1]) for row in rows)),
    ]
    objects = [
        {"label": "good", "text": "A superb film!", "id": 7},
        {"label": 0, "text": "dull"},
    ]
    files = [*tables, write(tmp_path, "a.jsonl", *map(json.dumps, objects))]
    for path in files:
        found = list(iterate_labelled_texts(path))
        assert [(each.label, each.text) for each in found] == rows
        assert found[1].place == f"{path}:{3 if path.name == 'named.tsv' else 2}"


def test_labels_are_ignored_where_they_are_predicted(tmp_path):
    labelled = write(tmp_path, "labelled.tsv", "good\tA film", "bad\tdull")
    bare = write(tmp_path, "bare.tsv", "A film", "dull")
    objects = write(tmp_path, "a.jsonl", '{"text": "A film", "label": null}', '{"text": "dull"}')
    expected = [("A film", None), ("dull", None)]
    for path in (labelled, bare, objects):
        found = iterate_labelled_texts(path, need_targets=False)
        assert [(each.text, each.label) for each in found] == expected


def test_columns_may_have_other_names_and_lines_may_be_blank(tmp_path):
    path = write(tmp_path, "a.tsv", "topic\tid\tbody", "trade\t7\tExports rose.", "", "oil\t8\tUp.")
    columns = {"label": "topic", "text": "body"}
    found = list(iterate_labelled_texts(path, columns=columns, keep_blank=True))
    expected = [
        Document("Exports rose.", "trade", f"{path}:2"),
        None,
        Document("Up.", "oil", f"{path}:4"),
    ]
    assert found == expected
    with pytest.raises(FenchelError, match=r"a\.tsv:3: line must not be blank"):
        list(iterate_labelled_texts(path, columns=columns))


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("a.tsv", "good", r"a\.tsv:2: line must have the columns label<tab>text, got 1 column"),
        ("a.tsv", "good\t ", r"a\.tsv:2: text must not be blank, got ' '"),
        ("a.tsv", "\ttext", r"a\.tsv:2: label must not be blank, got ''"),
        ("a.jsonl", '{"label": "good"}', r"a\.jsonl:2: object must have the key 'text'"),
        ("a.jsonl", '{"label": "good", "text": ""}', r"a\.jsonl:2: text must not be blank"),
        ("a.jsonl", '{"label": null, "text": "x"}', r"a\.jsonl:2: label must not be null"),
        ("a.jsonl", '{"label": 0.5, "text": "x"}', r"a\.jsonl:2: label must be a text, got 0\.5"),
        ("a.jsonl", '{"label": "a", "text": 3}', r"a\.jsonl:2: text must be a text, got 3"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, name, line, message):
    first = "good\tA film" if name.endswith(".tsv") else '{"label": 1, "text": "A film"}'
    with pytest.raises(FenchelError, match=message):
        list(iterate_labelled_texts(write(tmp_path, name, first, line)))


def test_texts_are_split_into_words_and_marks():
    processor = TextProcessor.fit(DOCUMENTS)
    assert processor.words("It's L’été, (3.5)!") == [
        "it's",
        "l’été",
        ",",
        "(",
        "3",
        ".",
        "5",
        ")",
        "!",
    ]
    assert processor.words(" ") == [""]  # attention needs a word
    cased = TextProcessor.fit(DOCUMENTS, lowercase=False, max_words=2)
    assert cased.words("A superb film!") == ["A", "superb"]
    assert cased.vocabulary.state() == ["A", ",", "Dull", "dull", "superb"]


def test_frequent_words_are_known_and_labels_are_sorted():
    processor = TextProcessor.fit(DOCUMENTS, min_count=2)
    assert processor.vocabulary.state() == ["dull", ".", "a", "film"]
    assert processor.labels == ["bad", "good"]
    assert TextProcessor.fit(DOCUMENTS, max_size=1).vocabulary.state() == ["dull"]


def test_one_label_cannot_be_learned():
    with pytest.raises(FenchelError, match="must have at least two labels, got good"):
        TextProcessor.fit(DOCUMENTS[:1])


def test_documents_become_padded_batches():
    processor = TextProcessor.fit(DOCUMENTS, min_count=2)
    data = processor.encode([*DOCUMENTS, Document("unlabelled")])
    assert len(data) == 4
    assert data.lengths.tolist() == [[4], [4], [4], [1]]
    (tokens, lengths), labels = data.batch(torch.tensor([3, 0]))
    a, film = processor.vocabulary.ids(["a", "film"])
    assert tokens.tolist() == [[UNK, PAD, PAD, PAD], [a, UNK, film, UNK]]
    assert lengths.tolist() == [1, 4]
    assert labels.tolist() == [0, 1]


def test_pairs_of_sentences_have_a_vocabulary_and_two_lengths(tmp_path):
    path = write(tmp_path, "a.tsv", "yes\tA dog runs.\tA dog moves.", "no\tA cat\tA dog")
    pairs = list(iterate_labelled_texts(path, SentencePair))
    assert pairs[1] == SentencePair("A cat", "A dog", "no", f"{path}:2")
    bare = write(tmp_path, "bare.tsv", "A cat\tA dog")
    assert list(iterate_labelled_texts(bare, SentencePair, need_targets=False)) == [
        SentencePair("A cat", "A dog", place=f"{bare}:1")
    ]
    processor = TextProcessor.fit(pairs)
    data = processor.encode(pairs)
    assert data.lengths.tolist() == [[4, 4], [2, 2]]
    (premise, _, hypothesis, lengths), labels = data.batch(torch.tensor([1]))
    assert premise.tolist() == [processor.vocabulary.ids(["a", "cat"])]
    assert hypothesis.tolist() == [processor.vocabulary.ids(["a", "dog"])]
    assert lengths.tolist() == [2]
    assert labels.tolist() == [processor.labels.index("no")]
    missing = write(tmp_path, "b.tsv", "yes\tA dog\tA cat", "no\tA cat\t ")
    with pytest.raises(FenchelError, match=r"b\.tsv:2: hypothesis must not be blank, got ' '"):
        list(iterate_labelled_texts(missing, SentencePair))


def test_an_unknown_label_is_named_with_its_text():
    processor = TextProcessor.fit(DOCUMENTS)
    message = r"one of those in training \(bad, good\), got 'fine' for 'a film'"
    with pytest.raises(FenchelError, match=message):
        processor.encode([DOCUMENTS[0], Document("a film", "fine")])


def test_a_stored_processor_is_the_same():
    processor = TextProcessor.fit(DOCUMENTS, lowercase=False, max_words=3)
    state = json.loads(json.dumps(processor.state()))
    assert TextProcessor.from_state(state, "processor.json") == processor


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": "good"}, "processor.json: labels must be a list, got 'good'"),
        ({"vocabulary": ["a", "a"]}, "processor.json: vocabulary: symbols must be unique"),
        ({"max_words": 0.5}, "processor.json: max_words must be a whole number, got 0.5"),
    ],
)
def test_a_stored_processor_of_another_form_is_refused(change, message):
    state = TextProcessor.fit(DOCUMENTS).state() | change
    with pytest.raises(FenchelError, match=message):
        TextProcessor.from_state(state, "processor.json")
