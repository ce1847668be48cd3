"""ARFF files of Weka, with the XML label lists of MULAN or the label counts of MEKA."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from xml.parsers import expat

import numpy as np

from fenchel.data.bad_items import BadItems
from fenchel.data.lines import Lines, read_lines, uncompressed_name
from fenchel.data.multilabel_example import (
    LocatedExamples,
    MultilabelExample,
    Numbers,
    parse_indicator,
    parse_number,
)
from fenchel.errors import FenchelError, unknown
from fenchel.stored_json import shortened

NUMERIC = ("numeric", "real", "integer")
# A value or a name: quoted, in which a backslash quotes a character, or up to the next separator
QUOTED = re.compile(
    r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,{}'"%][^,{}]*?))\s*(,|$)"""
)
NAME = re.compile(r"""\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s{]+))\s*(.*)""")
MEKA_COUNT = re.compile(r"-C\s+(-?\d+)")
ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True)
class Attribute:
    """A column: its name and its values, which are None for numbers."""

    name: str
    values: tuple[str, ...] | None
    line: int

    @property
    def is_indicator(self) -> bool:
        return self.values is not None and {*self.values} <= {"0", "1"}


@dataclass(frozen=True)
class Header:
    """What stands before the data of a file."""

    lines: Lines
    relation: str
    attributes: tuple[Attribute, ...]
    end: int

    def labels(self, source: Sequence[str]) -> dict[str, str]:
        """The label attributes, with the place that names each, for errors."""
        listed = _listed_labels(Path(self.lines.path), source)
        found = MEKA_COUNT.search(self.relation)
        if listed is None and found is None:
            name = f"{self.lines.name} must have an XML file with its labels beside it"
            raise FenchelError(f"{name}, or the setting labels must name them")
        if listed is None:
            assert found is not None
            count = int(found[1])
            names = [each.name for each in self.attributes]
            chosen = names[:count] if count >= 0 else names[count:]
            listed = dict.fromkeys(chosen, f"{self.lines.name}: -C {count}")
            if len(listed) != abs(count):
                got = f"{len(names)} attributes"
                raise FenchelError(f"{self.lines.name} must have {abs(count)} labels, got {got}")
        elif found is not None and len(listed) != abs(int(found[1])):
            got = f"{len(listed)} labels, {next(iter(listed.values()), 'none')} …"
            count = abs(int(found[1]))
            raise FenchelError(f"{self.lines.name} must have {count} labels (-C), got {got}")
        names = {each.name for each in self.attributes}
        for label, place in listed.items():
            if label not in names:
                error = unknown("label", label, names)
                raise FenchelError(
                    f"{place}: label must be an attribute of {self.lines.name}: {error}"
                )
        for attribute in self.attributes:
            if attribute.name in listed and not attribute.is_indicator:
                raise self.lines.error(attribute.line, f"label {attribute.name!r} must be {{0,1}}")
        return listed


def read_arff(
    path: str | PurePath,
    label_source: Sequence[str],
    ignored: Collection[str],
    *,
    need_targets: bool,
    bad: BadItems,
) -> LocatedExamples:
    """The examples of an ARFF file, dense or sparse, with the place of each.

    Nominal attributes with other values than 0 and 1 become one column per value, `name=value`.
    """
    lines = read_lines(path, bad)
    texts = iter(lines)
    header = _read_header(lines, texts)
    if not need_targets and not label_source and _listed_labels(Path(lines.path), ()) is None:
        labels = {}
    else:
        labels = header.labels(label_source)
    table = _Table(header, labels, {*ignored})
    for number, text in texts:
        if not text or text.lstrip().startswith("%"):
            continue
        try:
            example = table.parse(text.strip(), need_targets)
        except ValueError as error:
            bad.add(lines.error(number, str(error)))
        else:
            yield f"{lines.name}:{number}", example


def read_label_list(path: Path) -> dict[str, str]:
    """The labels of an XML file, with the file and the line of each."""
    labels: dict[str, str] = {}
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        place = f"{path}:{parser.CurrentLineNumber}"
        if tag == "label":
            name = attributes.get("name")
            if name is None:
                raise FenchelError(f"{place}: label must have a name")
            if name in labels:
                raise FenchelError(f"{place}: labels must be unique, got {name!r} twice")
            labels[name] = place

    parser.StartElementHandler = start
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        message = expat.errors.messages[error.code]
        raise FenchelError(f"{path}:{error.lineno}: file must be XML, got: {message}") from error
    except OSError as error:
        raise FenchelError(f"{path} must be a readable file, got: {error.strerror}") from error
    if not labels:
        raise FenchelError(f"{path} must have at least one label, got none")
    return labels


def _listed_labels(path: Path, source: Sequence[str]) -> dict[str, str] | None:
    """The labels that are named in settings, or in an XML file; None if there is neither."""
    if len(source) == 1 and source[0].endswith(".xml"):
        return read_label_list(Path(source[0]))
    if source:
        return dict.fromkeys(source, "labels")
    stem = PurePath(uncompressed_name(path)).stem.lower()
    beside = path.parent.glob("*.xml") if path.parent.is_dir() else ()
    matching = [each for each in beside if stem.startswith(each.stem.lower())]
    if not matching:
        return None
    return read_label_list(max(matching, key=lambda each: len(each.stem)))


def _read_header(lines: Lines, texts: Iterator[tuple[int, str]]) -> Header:
    relation, attributes = "", dict[str, Attribute]()
    for number, text in texts:
        keyword, _, rest = text.strip().partition(" ")
        if "\t" in keyword:
            keyword, _, rest = text.strip().partition("\t")
        kind = keyword.lower()
        if not keyword or keyword.startswith("%"):
            continue
        if kind == "@data":
            if not attributes:
                raise lines.error(number, "@data must come after at least one @attribute")
            return Header(lines, relation, tuple(attributes.values()), number)
        if kind == "@relation":
            relation = rest
        elif kind == "@attribute":
            attribute = _attribute(lines, number, f" {rest}")
            if attribute.name in attributes:
                first = attributes[attribute.name].line
                got = f"{attribute.name!r} in lines {first} and {number}"
                raise lines.error(number, f"attributes must have different names, got {got}")
            attributes[attribute.name] = attribute
        else:
            statement = "header must have @relation, @attribute and @data"
            raise lines.error(number, f"{statement}, got {shortened(text)}")
    raise FenchelError(f"{lines.name} must have a line @data")


def _attribute(lines: Lines, number: int, text: str) -> Attribute:
    found = NAME.fullmatch(text.rstrip())
    if found is None:
        statement = "attribute must have a name and a type"
        raise lines.error(number, f"{statement}, got {shortened(text.strip())}")
    name, kind = _unquoted(found), found[4].strip()
    if kind.lower() in NUMERIC:
        return Attribute(name, None, number)
    if kind.startswith("{") and kind.endswith("}"):
        try:
            values = tuple(_values(kind[1:-1]))
        except ValueError as error:
            raise lines.error(number, f"values of attribute {name!r}: {error}") from error
        return Attribute(name, values, number)
    statement = f"type of attribute {name!r} must be numeric or a list of values"
    raise lines.error(number, f"{statement}, got {shortened(kind)}")


def _values(text: str) -> Iterator[str]:
    """The values between commas."""
    place, more = 0, bool(text.strip())
    while more:
        found = QUOTED.match(text, place)
        if found is None:
            raise ValueError(f"values must be separated by commas, got {shortened(text[place:])}")
        yield _unquoted(found)
        place, more = found.end(), found[4] == ","


def _unquoted(found: re.Match[str]) -> str:
    plain = found[3]
    return plain.strip() if plain is not None else ESCAPED.sub(r"\1", found[1] or found[2] or "")


class _Table:
    """The columns of the examples of a file."""

    def __init__(self, header: Header, labels: dict[str, str], ignored: set[str]) -> None:
        self.attributes, self.labels = header.attributes, labels
        names, self.first = list[str](), list[int]()
        # What a sparse row means where it has no entry, if that is not zero: the first value of a list.
        self.absent: dict[int, dict[int, float]] = {}
        for place, attribute in enumerate(self.attributes):
            kept = attribute.name not in labels and attribute.name not in ignored
            self.first.append(len(names) if kept else -1)
            if kept and (attribute.values is None or attribute.is_indicator):
                names.append(attribute.name)
            elif kept:
                self.absent[place] = {len(names): 1.0}
                names += [f"{attribute.name}={value}" for value in attribute.values or ()]
        self.names = tuple(names)

    def parse(self, text: str, need_targets: bool) -> MultilabelExample:
        sparse = text.startswith("{")
        cells = self._sparse_cells(text) if sparse else dict(enumerate(self._dense_cells(text)))
        labels, entries = list[str](), dict[int, float]()
        for place in sorted(cells.keys() | self.absent.keys()):
            if place not in cells:
                entries |= self.absent[place]
                continue
            attribute, first = self.attributes[place], self.first[place]
            try:
                if attribute.name in self.labels:
                    if need_targets and parse_indicator(cells[place]):
                        labels.append(attribute.name)
                elif first >= 0:
                    column, value = _entry(attribute, cells[place])
                    entries[first + column] = value
            except ValueError as error:
                raise ValueError(f"attribute {attribute.name!r} {error}") from None
        if sparse:
            names = tuple(self.names[column] for column in entries)
            numbers = Numbers(names, np.array(list(entries.values())), is_sparse=True)
        else:
            values = np.zeros(len(self.names))
            values[list(entries)] = list(entries.values())
            numbers = Numbers(self.names, values)
        if not need_targets:
            return MultilabelExample(numbers)
        return MultilabelExample(numbers, tuple(labels), self.labels)

    def _dense_cells(self, text: str) -> list[str]:
        cells = list(_values(text)) if "'" in text or '"' in text else _split(text)
        if len(cells) != len(self.attributes):
            statement = f"row must have {len(self.attributes)} values, one per attribute"
            raise ValueError(f"{statement}, got {len(cells)}")
        return cells

    def _sparse_cells(self, text: str) -> dict[int, str]:
        if not text.endswith("}"):
            raise ValueError("sparse row must end with }")
        cells: dict[int, str] = {}
        for entry in _split(text[1:-1]) if text[1:-1].strip() else []:
            place, _, value = entry.partition(" ")
            if not place.isdecimal() or not value.strip():
                statement = "entry of a sparse row must be the number of an attribute and a value"
                raise ValueError(f"{statement}, got {shortened(entry)}")
            if not int(place) < len(self.attributes):
                statement = f"number of an attribute must be below {len(self.attributes)}"
                raise ValueError(f"{statement}, got {place}")
            if int(place) in cells:
                raise ValueError(f"attribute {place} must occur once in a row")
            cells[int(place)] = next(_values(value))
        return cells


def _entry(attribute: Attribute, cell: str) -> tuple[int, float]:
    """The column of a value, of those of its attribute, and the number in it."""
    if cell == "?":
        raise ValueError("must have a value, got ?")
    if attribute.values is None:
        return 0, parse_number(cell)
    if cell not in attribute.values:
        raise ValueError(f"must be one of {', '.join(attribute.values)}, got {shortened(cell)}")
    return (0, float(cell)) if attribute.is_indicator else (attribute.values.index(cell), 1.0)


def _split(text: str) -> list[str]:
    return [cell.strip() for cell in text.split(",")]
