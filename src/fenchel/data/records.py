"""Files of records: columns between tabs (TSV), or one JSON object a line (JSONL)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from fenchel.data.lines import Lines, is_standard_input, plain_name, read_lines
from fenchel.errors import FenchelError
from fenchel.schema import parse_json, shortened

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")


@dataclass(slots=True)
class Record:
    """The fields of one line, by name, and where it stands."""

    fields: dict[str, Any]
    lines: Lines
    number: int

    def error(self, statement: str, *, expected: object, got: object) -> FenchelError:
        return self.lines.error(self.number, statement, expected=expected, got=got)

    def text(self, name: str) -> str:
        """The field `name`, which must be text with something in it."""
        value = self.fields.get(name)
        if isinstance(value, str) and value.strip():
            return value
        got = "nothing" if value is None else "an empty text" if value == "" else shortened(value)
        raise self.error(f"{name} must be given", expected="a text that is not blank", got=got)


def read_records(
    path: str | PurePath, layouts: Sequence[tuple[str, ...]], needed: Collection[str] = ()
) -> Iterator[Record]:
    """The records of a file, one at a time.

    A TSV file has the columns of one of the `layouts`, the same on every line; the number of
    columns says which, or a first line with their names, which may then stand in any order. In
    JSONL the objects have fields of these names. Fields `needed` must be there.
    """
    lines = read_lines(path)
    if _is_json(path, lines):
        names = tuple(dict.fromkeys(name for layout in layouts for name in layout))
        return _json_records(lines, names, needed)
    allowed = [layout for layout in layouts if set(needed) <= set(layout)]
    return _column_records(lines, allowed, _names(lines, layouts, allowed))


def _is_json(path: str | PurePath, lines: Lines) -> bool:
    if is_standard_input(path):
        return lines.first.lstrip().startswith("{")
    return plain_name(path).endswith(JSON_ENDINGS)


def _names(
    lines: Lines, layouts: Sequence[tuple[str, ...]], allowed: Sequence[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """The columns that the first line names, if it does; an error if they are none that may be."""
    names = tuple(name.strip().lower() for name in lines.first.split("\t"))
    if not any(len(layout) > 1 and set(layout) <= set(names) for layout in layouts):
        return None
    if sorted(names) not in map(sorted, allowed):
        got = shortened(lines.first)
        raise lines.error(1, "unknown names of columns", expected=_listed(allowed), got=got)
    return names


def _listed(layouts: Iterable[tuple[str, ...]]) -> str:
    return " or ".join("<tab>".join(layout) for layout in layouts)


def _column_records(
    lines: Lines, layouts: Sequence[tuple[str, ...]], header: tuple[str, ...] | None
) -> Iterator[Record]:
    named = header is not None
    by_count = {len(layout): layout for layout in ([header] if named else layouts)}
    number = 0
    for number, text in lines:
        if named and number == 1:
            continue
        values = text.split("\t")
        layout = by_count.get(len(values))
        if layout is None:
            expected = _listed(by_count.values())
            noun = "column" if len(values) == 1 else "columns"
            got = f"{len(values)} {noun}: {shortened(text)}" if text.strip() else "a blank line"
            raise lines.error(number, "wrong columns", expected=expected, got=got)
        if number == 1:
            by_count = {len(layout): layout}
        yield Record(dict(zip(layout, values, strict=True)), lines, number)
    if named and number == 1:
        got = "only the names of the columns"
        raise lines.error(1, "a data file has examples", expected="a second line", got=got)


def _json_records(
    lines: Lines, names: tuple[str, ...], needed: Collection[str]
) -> Iterator[Record]:
    for number, text in lines:
        try:
            fields = parse_json(text)
        except ValueError as error:
            got = f"{shortened(text)} ({error})"
            raise lines.error(
                number, "not JSON", expected="one JSON object a line", got=got
            ) from error
        if not isinstance(fields, dict):
            got = shortened(text)
            raise lines.error(number, "not an object", expected="one JSON object", got=got)
        record = Record({name: fields[name] for name in names if name in fields}, lines, number)
        for name in needed:
            if record.fields.get(name) is None:
                got = shortened(text)
                raise record.error(f"{name} is missing", expected=", ".join(names), got=got)
        yield record
