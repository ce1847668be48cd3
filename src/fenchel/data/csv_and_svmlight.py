"""Numbers with labels in CSV and svmlight files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TypeVar

import numpy as np

from fenchel.data.arff import read_label_list
from fenchel.data.bad_items import BadItems
from fenchel.data.lines import Lines, read_lines
from fenchel.data.multilabel_example import (
    LocatedExamples,
    MultilabelExample,
    Numbers,
    parse_indicator,
    parse_number,
    split_labels,
)
from fenchel.errors import FenchelError, unknown
from fenchel.stored_json import shortened

DELIMITERS = ",;\t"
T = TypeVar("T")


def read_csv(
    path: str | PurePath,
    label_source: Sequence[str],
    ignored: Collection[str],
    *,
    need_targets: bool,
    columns: Mapping[str, str],
    bad: BadItems,
) -> LocatedExamples:
    """The examples of a CSV file whose first line names the columns, with the place of each.

    Columns are separated by commas, semicolons or tabs, whichever the header has most of. Labels are
    in columns with 0 and 1, which `label_source` names, or in one column `labels`, between commas.
    """
    for name in columns:
        if name != "labels":
            raise unknown("field", name, ["labels"])
    lines = read_lines(path, bad)
    texts = iter(lines)
    number, text = next(each for each in texts if each[1])
    delimiter = max(DELIMITERS, key=text.count)
    header = [cell.strip() for cell in _cells(lines, number, text, delimiter)]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise lines.error(number, f"header must name every column once, got {twice!r} twice")
    column = columns.get("labels", "labels")
    labels = _label_columns(lines, number, header, label_source, column, need_targets)
    features = [name for name in header if name not in {*labels, *ignored, column}]
    names = tuple(features)
    declared = dict.fromkeys(labels, f"{lines.name}:{number}") if need_targets else None
    for number, text in texts:
        if not text:
            continue
        try:
            cells = _cells(lines, number, text, delimiter)
            if len(cells) != len(header):
                statement = f"line must have {len(header)} columns, as the header"
                raise lines.error(number, f"{statement}, got {len(cells)}")
            row = dict(zip(header, cells, strict=True))
            values = [_parsed(lines, number, name, row[name], parse_number) for name in names]
            found = None
            if need_targets and labels:
                marks = [
                    _parsed(lines, number, name, row[name], parse_indicator) for name in labels
                ]
                found = tuple(name for name, mark in zip(labels, marks, strict=True) if mark)
            elif need_targets:
                found = split_labels(row[column])
        except FenchelError as error:
            bad.add(error)
        else:
            example = MultilabelExample(Numbers(names, np.array(values)), found, declared)
            yield f"{lines.name}:{number}", example


def read_svmlight(path: str | PurePath, *, need_targets: bool, bad: BadItems) -> LocatedExamples:
    """The examples of an svmlight file, `label,label column:value column:value`, with their places."""
    lines = read_lines(path, bad)
    for number, line in lines:
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            yield f"{lines.name}:{number}", _svmlight_row(text, need_targets)
        except ValueError as error:
            bad.add(lines.error(number, str(error)))


def _svmlight_row(text: str, need_targets: bool) -> MultilabelExample:
    first, *entries = text.split()
    if ":" in first:  # there are no labels
        entries, first = [first, *entries], ""
    return MultilabelExample(parse_entries(entries), split_labels(first) if need_targets else None)


def parse_entries(entries: Sequence[str]) -> Numbers:
    """Entries `column:value`; a `ValueError` says what must hold."""
    cells: dict[str, float] = {}
    for entry in entries:
        column, colon, value = entry.partition(":")
        if column == "qid":
            continue
        if not (colon and column.isdecimal()):
            raise ValueError(f"entry must be the number of a column:value, got {shortened(entry)}")
        if column in cells:
            raise ValueError(f"column {column} must occur once in a line")
        try:
            cells[column] = parse_number(value)
        except ValueError as error:
            raise ValueError(f"column {column} {error}") from None
    values = np.array(list(cells.values()), dtype=np.float64)
    return Numbers(tuple(cells), values, is_sparse=True)


def _label_columns(
    lines: Lines,
    number: int,
    header: Sequence[str],
    source: Sequence[str],
    column: str,
    need_targets: bool,
) -> list[str]:
    """The columns with 0 and 1, none if one column has the labels of an example."""
    names = list(source)
    if len(names) == 1 and names[0].endswith(".xml"):
        names = list(read_label_list(Path(names[0])))
    for name in names if need_targets else []:
        if name not in header:
            raise lines.error(
                number, f"header must have every label: {unknown('label', name, header)}"
            )
    if not names and need_targets and column not in header:
        statement = f"header must have the column {column}"
        got = shortened(", ".join(header))
        raise lines.error(
            number, f"{statement}, or the setting labels must name columns, got {got}"
        )
    return names


def _cells(lines: Lines, number: int, text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise lines.error(number, f"line must be CSV, got: {error}") from error


def _parsed(lines: Lines, number: int, name: str, cell: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(cell)
    except ValueError as error:
        raise lines.error(number, f"column {name!r} {error}") from None
