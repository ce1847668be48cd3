"""Examples with several labels: a text or numbers, read from ARFF, svmlight, CSV, TSV and JSONL files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath

from fenchel.data.arff import read_arff
from fenchel.data.bad_items import BadItems
from fenchel.data.csv_and_svmlight import read_csv, read_svmlight
from fenchel.data.lines import uncompressed_name
from fenchel.data.multilabel_example import LocatedExamples, MultilabelExample, split_labels
from fenchel.data.records import Record, read_records
from fenchel.errors import FenchelError
from fenchel.stored_json import shortened

FIELDS = ("labels", "text")


def iterate_multilabel(
    path: str | PurePath,
    *,
    need_targets: bool = True,
    allow_unlabelled: bool = False,
    label_source: Sequence[str] = (),
    ignored: Collection[str] = (),
    columns: Mapping[str, str] | None = None,
    keep_blank: bool = False,
    bad: BadItems | None = None,
) -> Iterator[MultilabelExample | None]:
    """Read the examples of a file one by one.

    The name of the file says what it is: .arff, .csv, .svm, .svmlight or .libsvm (before .gz or .xz);
    other files have a text per line, as TSV or JSONL with the fields `labels` and `text`.

    Args:
        path: The file; "-" is standard input.
        need_targets: Whether every example has labels; without, labels are ignored and may be missing.
        allow_unlabelled: Whether an example may have no label.
        label_source: The names of the columns with labels in an ARFF or CSV file, or an XML file with
            these. By default, an ARFF file has an XML file beside it, a CSV file a column `labels`.
        ignored: Columns that are left out.
        columns: The names of columns or keys that differ from those of the fields.
        keep_blank: Whether a blank line is None instead of an error.
        bad: Takes the errors of bad lines; by default, the first is raised.
    """
    bad = bad or BadItems()
    suffix = PurePath(uncompressed_name(path)).suffix.lower()
    if suffix == ".arff":
        found = read_arff(path, label_source, ignored, need_targets=need_targets, bad=bad)
    elif suffix == ".csv":
        found = read_csv(
            path, label_source, ignored, need_targets=need_targets, columns=columns or {}, bad=bad
        )
    elif suffix in (".svm", ".svmlight", ".libsvm"):
        found = read_svmlight(path, need_targets=need_targets, bad=bad)
    else:
        found = _read_texts(path, need_targets, columns, keep_blank, bad)
    for place, example in found:
        if example is not None and need_targets and not allow_unlabelled and not example.labels:
            bad.add(FenchelError(f"{place}: example must have at least one label, got none"))
        else:
            yield example


def _read_texts(
    path: str | PurePath,
    need_targets: bool,
    columns: Mapping[str, str] | None,
    keep_blank: bool,
    bad: BadItems,
) -> LocatedExamples:
    required = FIELDS if need_targets else ("text",)
    for record in read_records(
        path, FIELDS, required, columns=columns, bad=bad, keep_blank=keep_blank
    ):
        place, example = f"{record.lines.name}:{record.number}", None
        try:
            if not record.blank:
                labels = _labels(record) if need_targets else None
                example = MultilabelExample(record.text("text"), labels)
        except FenchelError as error:
            bad.add(error)
        if example is not None or keep_blank:
            yield place, example


def _labels(record: Record) -> tuple[str, ...]:
    """Labels as a list, as JSON has it, or between commas."""
    value = record.fields.get("labels")
    if isinstance(value, list):
        names = [str(each) if type(each) is int else each for each in value]
        if all(isinstance(each, str) and each.strip() for each in names):
            return tuple(dict.fromkeys(each.strip() for each in names))
    elif isinstance(value, str) or type(value) is int:
        return split_labels(str(value))
    raise record.error(f"labels must be texts, got {shortened(value)}")
