"""Files of records: one per line, as columns between tabs (TSV) or as a JSON object (JSONL)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any, TypeVar

from fenchel.data.bad_items import BadItems
from fenchel.data.lines import Lines, is_standard_input, read_lines, uncompressed_name
from fenchel.errors import FenchelError, unknown
from fenchel.stored_json import parse_json, shortened

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
OTHER_NAMES = "--columns FIELD=NAME maps other names"
Fields = dict[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class Record:
    """The fields of one line.

    Attributes:
        fields: The values by field name: texts from TSV, JSON values from JSONL. Optional fields
            that the line does not have are not in it.
        lines: The lines of the file.
        number: The number of the line, starting at 1.
    """

    fields: Fields
    lines: Lines
    number: int

    @property
    def blank(self) -> bool:
        """Whether the line is blank (see `read_records`)."""
        return not self.fields

    def error(self, message: str) -> FenchelError:
        """Return an error that names the file and the line."""
        return self.lines.error(self.number, message)

    def text(self, name: str) -> str:
        """Return the value of a field, which must be a text that is not blank."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self.error(f"{name} must be a text, got {_shown(value)}")
        if not value.strip():
            raise self.error(f"{name} must not be blank, got {value!r}")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return `text(name)`, or None if the field is missing or null."""
        return None if self.fields.get(name) is None else self.text(name)

    def label(self, name: str) -> str:
        """Return the value of a field that has the name or the number of a class, as a text."""
        value = self.fields.get(name)
        return str(value) if type(value) is int else self.text(name)


def read_records(
    path: str | PurePath | Lines,
    fields: Sequence[str],
    required: Collection[str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    keep_blank: bool = False,
    bad: BadItems | None = None,
) -> Iterator[Record]:
    """Read the records of a TSV or JSONL file one at a time.

    The first line of a TSV file may name the columns: it does if it contains the names of two
    fields. The columns can then be in any order, and columns of other names are ignored. Without
    such a header, a line has all fields in the given order, or all but some optional ones, which
    are left out from the last to the first. JSONL has objects with the fields as keys; other keys
    are ignored. Files whose names end with .jsonl, .ndjson or .json (before .gz or .xz) are JSONL;
    standard input is if it starts with a brace.

    Args:
        path: The file, or its lines; "-" is standard input.
        fields: The names of all fields, in the order of the columns of a file without a header.
        required: The fields that every record must have; the default is all.
        columns: The name of a field's column or key where it differs from the field's name. A TSV
            file must then have a header.
        keep_blank: Return a record without fields for each blank line, and for each bad line that
            is skipped; by default, a blank line is an error. Blank lines at the end of the file are
            always left out.
        bad: Takes the errors of bad lines; by default, the first is raised.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "news.tsv")
    ...     _ = path.write_text("topic\\tid\\tbody\\ntrade\\t7\\tExports rose.\\n")
    ...     names = {"label": "topic", "text": "body"}
    ...     [record.fields for record in read_records(path, ["label", "text"], columns=names)]
    [{'label': 'trade', 'text': 'Exports rose.'}]
    """
    required = fields if required is None else required
    names = _column_names(fields, columns or {})
    lines = path if isinstance(path, Lines) else read_lines(path, bad)
    if _is_json(lines):
        parse = partial(_parse_object, lines, names, required)
        return _records(lines, parse, keep_blank)
    table = _Table.from_first_line(lines, names, required, must_have_header=bool(columns))
    return _records(lines, table.parse, keep_blank, skip_first=table.has_header)


def read_examples(
    path: str | PurePath | Lines,
    fields: Sequence[str],
    make: Callable[[Record], T],
    required: Collection[str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    keep_blank: bool = False,
    bad: BadItems | None = None,
) -> Iterator[T | None]:
    """Read a file as `read_records` does, and make an example of each record.

    Args:
        path: The file, or its lines; "-" is standard input.
        fields: The names of all fields.
        make: Makes an example; it raises the error of a record that is bad.
        required: The fields that every record must have; the default is all.
        columns: The names of columns or keys that differ from those of the fields.
        keep_blank: Return None for each blank line, and for each bad line that is skipped.
        bad: Takes the errors of bad lines; by default, the first is raised.
    """
    lines = path if isinstance(path, Lines) else read_lines(path, bad)
    for record in read_records(lines, fields, required, columns=columns, keep_blank=keep_blank):
        example = None
        if not record.blank:
            try:
                example = make(record)
            except FenchelError as error:
                lines.bad.add(error)
        if example is not None or keep_blank:
            yield example


def _column_names(fields: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the name of the column or key of each field."""
    for field in columns:
        if field not in fields:
            raise unknown("field", field, fields)
    names = {field: columns.get(field, field) for field in fields}
    if len(set(names.values())) < len(names):
        raise FenchelError(f"fields must be in different columns, got {names}")
    return names


def _is_json(lines: Lines) -> bool:
    if is_standard_input(lines.path):
        return lines.first[1].lstrip().startswith("{")
    return uncompressed_name(lines.path).endswith(JSON_ENDINGS)


def _records(
    lines: Lines,
    parse: Callable[[int, str], Fields],
    keep_blank: bool,
    skip_first: bool = False,
) -> Iterator[Record]:
    """Parse the lines; `skip_first` leaves out the first one that is not blank."""
    first, last = lines.first[0], 0
    for number, text in lines:
        last = number
        if number == first and skip_first:
            continue
        fields: Fields = {}
        try:
            if text:
                fields = parse(number, text)
            elif not keep_blank and lines.is_blank(number, text):
                raise lines.error(number, "line must not be blank")
        except FenchelError as error:
            lines.bad.add(error)
        if fields or keep_blank:
            yield Record(fields, lines, number)
    if skip_first and last == first:
        raise lines.error(first, "header must be followed by at least one line")


def _parse_object(
    lines: Lines, names: Mapping[str, str], required: Collection[str], number: int, text: str
) -> Fields:
    try:
        values = parse_json(text)
    except ValueError as error:
        message = f"line must be a JSON object, got {shortened(text)} ({error})"
        raise lines.error(number, message) from error
    if not isinstance(values, dict):
        raise lines.error(number, f"line must be a JSON object, got {shortened(text)}")
    for name in (names[field] for field in required):
        if name not in values:
            got = shortened(", ".join(values)) if values else "an empty object"
            raise lines.error(
                number, f"object must have the key {name!r}, got {got} ({OTHER_NAMES})"
            )
        if values[name] is None:
            raise lines.error(number, f"{name} must not be null")
    return {field: values[name] for field, name in names.items() if name in values}


@dataclass(frozen=True)
class _Table:
    """The columns of a TSV file.

    Attributes:
        lines: The lines of the file.
        columns: The names of the columns.
        places: The place of the column of each field.
        has_header: Whether the first line has the names of the columns.
    """

    lines: Lines
    columns: tuple[str, ...]
    places: dict[str, int]
    has_header: bool

    @classmethod
    def from_first_line(
        cls,
        lines: Lines,
        names: Mapping[str, str],
        required: Collection[str],
        *,
        must_have_header: bool,
    ) -> _Table:
        """Find the columns by the names in the first line, or by its number of columns."""
        number, text = lines.first
        header = tuple(cell.strip().lower() for cell in text.split("\t"))
        lower = {field: name.lower() for field, name in names.items()}
        if must_have_header or len({*header} & {*lower.values()}) > 1:
            _check_header(lines, header, lower, required)
            places = {
                field: header.index(lower[field]) for field in lower if lower[field] in header
            }
            return cls(lines, header, places, has_header=True)
        layouts = _layouts(names, required)
        layout = next((each for each in layouts if len(each) == len(header)), None)
        if layout is None:
            if not lines.bad.skip:
                hint = OTHER_NAMES if len(header) > 1 else ""
                raise _wrong_columns(lines, number, text, layouts, hint)
            layout = layouts[0]
        return cls(
            lines, layout, {field: layout.index(field) for field in layout}, has_header=False
        )

    def parse(self, number: int, text: str) -> Fields:
        values = text.split("\t")
        if len(values) != len(self.columns):
            raise _wrong_columns(self.lines, number, text, [self.columns])
        return {field: values[place] for field, place in self.places.items()}


def _check_header(
    lines: Lines, header: Sequence[str], names: Mapping[str, str], required: Collection[str]
) -> None:
    """Refuse a header without a required column, or with two columns for one field."""
    got = shortened(lines.first[1])
    missing = [names[field] for field in required if names[field] not in header]
    if missing:
        listed = ", ".join(names[field] for field in required)
        message = f"header must have the columns {listed}, got {got} ({OTHER_NAMES})"
        raise lines.error(lines.first[0], message)
    for name in names.values():
        if header.count(name) > 1:
            raise lines.error(lines.first[0], f"header must have one column {name}, got {got}")


def _layouts(fields: Iterable[str], required: Collection[str]) -> list[tuple[str, ...]]:
    """Return the columns of files without a header: all fields, or some optional ones left out.

    >>> _layouts(["lemma", "form", "tags", "language"], required=["lemma", "tags"])
    [('lemma', 'form', 'tags', 'language'), ('lemma', 'form', 'tags'), ('lemma', 'tags')]
    """
    layouts = [tuple(fields)]
    for field in reversed(layouts[0]):
        if field not in required:
            layouts.append(tuple(each for each in layouts[-1] if each != field))
    return layouts


def _wrong_columns(
    lines: Lines, number: int, text: str, layouts: Iterable[tuple[str, ...]], hint: str = ""
) -> FenchelError:
    columns = " or ".join("<tab>".join(layout) for layout in layouts)
    count = 1 + text.count("\t")
    got = f"{count} column{'s' if count > 1 else ''}: {shortened(text)}"
    message = f"line must have the columns {columns}, got {got}"
    return lines.error(number, f"{message} ({hint})" if hint else message)


def _shown(value: object) -> str:
    return "null" if value is None else shortened(value)
