"""Morphological inflection: a lemma and its tags to a form, in one language or in many.

TSV as in the shared tasks of SIGMORPHON, `lemma form tags` with tags between semicolons, where a
fourth column may name the language; `lemma tags` where forms are to be predicted, or `lemma tags
language` below a line with these names. JSONL has the fields lemma, form, tags (a text or a list) and
language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePath

from fenchel.data.example import Example
from fenchel.data.lines import is_standard_input, plain_name
from fenchel.data.records import JSON_ENDINGS, Record, read_records
from fenchel.errors import rule
from fenchel.schema import shortened

# Of the layouts with equally many columns the last is meant where the columns are not named.
LAYOUTS = (
    ("lemma", "tags", "language"),
    ("lemma", "form", "tags"),
    ("lemma", "tags"),
    ("lemma", "form", "tags", "language"),
)
_SPLIT = "train-high|train-medium|train-low|train|covered-test|test|dev|valid|val"
_ENDING = re.compile(rf"[-._](?:{_SPLIT})$")
_NO_LANGUAGE = re.compile(rf"(?:{_SPLIT}|training|validation|data|input|words|lemmas)?")


def read_inflection(
    paths: str | PurePath | Iterable[str | PurePath],
    language: str | None = None,
    *,
    need_targets: bool = False,
) -> list[Example]:
    """Read one file or several; several are one multilingual data set, in the order given.

    Args:
        paths: The files; "-" is standard input.
        language: The language of every file. By default a column or field `language` says it, else
            the name of the file does (`language_of`).
        need_targets: Whether a line without a form is an error.
    """
    files = [paths] if isinstance(paths, str | PurePath) else list(paths)
    if not files:
        raise rule("there must be something to read", expected="at least one file", got="none")
    repeated = {str(path) for path in files if files.count(path) > 1}
    if repeated:
        got = f"{', '.join(sorted(repeated))} more than once"
        raise rule("a file is read once", expected="different files", got=got)
    needed = ("lemma", "form", "tags") if need_targets else ("lemma", "tags")
    examples = []
    for path in files:
        default = language if language is not None else language_of(path)
        records = read_records(path, LAYOUTS, needed)
        examples += [_example(record, default, fixed=language is not None) for record in records]
    return examples


def language_of(path: str | PurePath) -> str:
    """The language that a file name tells: what stands before the name of the split.

    >>> language_of("task1/all/scottish-gaelic-train-medium"), language_of("tr.ndjson")
    ('scottish-gaelic', 'tr')

    A name that only says which split it is tells none, nor does standard input:

    >>> language_of("train.tsv"), language_of("-")
    ('', '')
    """
    if is_standard_input(path):
        return ""
    name = plain_name(path)
    stem = name.rpartition(".")[0] if name.endswith((".tsv", ".txt", *JSON_ENDINGS)) else name
    stem = _ENDING.sub("", stem)
    return "" if _NO_LANGUAGE.fullmatch(stem) else stem


def _example(record: Record, language: str, *, fixed: bool) -> Example:
    if not fixed and "language" in record.fields:
        language = record.text("language")
    form = record.text("form") if record.fields.get("form") is not None else None
    return Example(record.text("lemma"), form, _tags(record, language), language)


def _tags(record: Record, language: str) -> tuple[str, ...]:
    given = record.fields.get("tags")
    if isinstance(given, list) and all(isinstance(tag, str) for tag in given):
        given = ";".join(given)
    elif not isinstance(given, str):
        got = shortened(given)
        raise record.error("tags are texts", expected="a text or a list of texts", got=got)
    tags = _split_tags(given, language)
    if not all(tags):
        got = shortened(given)
        raise record.error("a tag is blank", expected="tags between semicolons", got=got)
    return tags


@lru_cache(maxsize=2**16)
def _split_tags(tags: str, language: str) -> tuple[str, ...]:
    """Language and tags; kept, because the same bundles of tags occur over and over."""
    split = tuple(tag.strip() for tag in tags.split(";"))
    return (language, *split) if language else split
