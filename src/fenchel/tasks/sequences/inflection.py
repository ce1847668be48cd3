"""Morphological inflection: a lemma and its tags to a form, in one language or in many.

TSV as in the shared tasks of SIGMORPHON, `lemma form tags` with tags between semicolons, where a
fourth column may name the language; `lemma tags` where forms are to be predicted, or `lemma tags
language` below a line with these names. JSONL has the fields lemma, form, tags (a text or a list) and
language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import PurePath

from fenchel.data.bad_items import BadItems
from fenchel.data.lines import Lines, is_standard_input, read_lines, uncompressed_name
from fenchel.data.records import JSON_ENDINGS, Record, read_examples
from fenchel.errors import FenchelError
from fenchel.stored_json import shortened
from fenchel.tasks.sequences.example import Example

FIELDS = ("lemma", "form", "tags", "language")
_SPLIT = "train-high|train-medium|train-low|train|covered-test|test|dev|valid|val"
_ENDING = re.compile(rf"[-._](?:{_SPLIT})$")
_NO_LANGUAGE = re.compile(rf"(?:{_SPLIT}|training|validation|data|input|words|lemmas)?")


def read_inflection(
    paths: str | PurePath | Iterable[str | PurePath],
    language: str | None = None,
    *,
    need_targets: bool = False,
    columns: Mapping[str, str] | None = None,
    bad: BadItems | None = None,
) -> list[Example]:
    """Read one file, or several as one multilingual data set in the order given.

    Args:
        paths: The files; "-" is standard input.
        language: The language of every file. By default it is that of a column or field `language`,
            else that of the name of the file (`language_of`).
        need_targets: Whether every line must have a form.
        columns: The names of columns or keys that differ from those of the fields.
        bad: Takes the errors of bad lines; by default, the first is raised.
    """
    files = [paths] if isinstance(paths, str | PurePath) else list(paths)
    if not files:
        raise FenchelError("at least one file must be given")
    repeated = sorted({str(path) for path in files if files.count(path) > 1})
    if repeated:
        raise FenchelError(f"files must be different, got {', '.join(repeated)} more than once")
    return [
        example
        for path in files
        for example in iterate_inflection(
            path, language, need_targets=need_targets, columns=columns, bad=bad
        )
        if example is not None
    ]


def iterate_inflection(
    path: str | PurePath | Lines,
    language: str | None = None,
    *,
    need_targets: bool = False,
    columns: Mapping[str, str] | None = None,
    keep_blank: bool = False,
    bad: BadItems | None = None,
) -> Iterator[Example | None]:
    """Read one file example by example; with `keep_blank`, a blank line is None instead of an error."""
    required = ("lemma", "form", "tags") if need_targets else ("lemma", "tags")
    lines = path if isinstance(path, Lines) else read_lines(path, bad)
    if need_targets:
        _check_not_pairs(lines)
    default = language if language is not None else language_of(lines.path)
    make = partial(_example, language=default, fixed=language is not None)
    return read_examples(lines, FIELDS, make, required, columns=columns, keep_blank=keep_blank)


def _check_not_pairs(lines: Lines) -> None:
    """Refuse two columns, and name the recipe that takes them."""
    number, text = lines.first
    is_json, cells = text.lstrip().startswith("{"), text.lower().split("\t")
    if len(cells) == 2 and not is_json and not {*cells} & {*FIELDS}:
        got = f"2 columns: {shortened(text)} (for pairs of strings use the recipe transduction)"
        raise lines.error(
            number, f"line must have the columns {'<tab>'.join(FIELDS[:3])}, got {got}"
        )


def language_of(path: str | PurePath) -> str:
    """The language in a file name: the part before the name of the split.

    >>> language_of("task1/all/scottish-gaelic-train-medium"), language_of("tr.ndjson")
    ('scottish-gaelic', 'tr')

    The name of a split alone has no language, nor has standard input:

    >>> language_of("train.tsv"), language_of("-")
    ('', '')
    """
    if is_standard_input(path):
        return ""
    name = uncompressed_name(path)
    stem = name.rpartition(".")[0] if name.endswith((".tsv", ".txt", *JSON_ENDINGS)) else name
    stem = _ENDING.sub("", stem)
    return "" if _NO_LANGUAGE.fullmatch(stem) else stem


def _example(record: Record, language: str, *, fixed: bool) -> Example:
    if not fixed and "language" in record.fields:
        language = record.text("language")
    form = record.optional_text("form")
    return Example(record.text("lemma"), form, _tags(record, language), language)


def _tags(record: Record, language: str) -> tuple[str, ...]:
    given = record.fields.get("tags")
    if isinstance(given, list) and all(isinstance(tag, str) for tag in given):
        given = ";".join(given)
    elif not isinstance(given, str):
        raise record.error(f"tags must be a text or a list of texts, got {shortened(given)}")
    tags = _split_tags(given, language)
    if not all(tags):
        raise record.error(f"tags must not be blank, got {shortened(given)}")
    return tags


@lru_cache(maxsize=2**16)
def _split_tags(tags: str, language: str) -> tuple[str, ...]:
    """Language and tags; cached, because most tags occur many times."""
    split = tuple(tag.strip() for tag in tags.split(";"))
    return (language, *split) if language else split
