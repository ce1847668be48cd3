"""Parallel texts, pairs of a source and a target: translation, transduction, summarization.

A TSV file `source target` or JSONL with these fields, or two files with a source and its target on lines
of the same number. A single column has sources whose targets are to be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from fenchel.data.bad_items import BadItems
from fenchel.data.lines import Lines, read_lines
from fenchel.data.records import Record, read_examples
from fenchel.errors import FenchelError
from fenchel.tasks.sequences.example import Example

FIELDS = ("source", "target")


def read_parallel(
    path: str | PurePath,
    target_path: str | PurePath | None = None,
    *,
    need_targets: bool = False,
    columns: Mapping[str, str] | None = None,
    bad: BadItems | None = None,
) -> list[Example]:
    """Read pairs from one file, or from the file of the sources and the file of the targets.

    Args:
        path: The file of the pairs, or of the sources.
        target_path: The file of the targets, which must have as many lines.
        need_targets: Whether every line must have a target.
        columns: The names of columns or keys that differ from those of the fields.
        bad: Takes the errors of bad lines, or of bad pairs of two files; by default, the first is raised.
    """
    if target_path is not None:
        return _two_files(path, target_path, bad)
    examples = iterate_parallel(path, need_targets=need_targets, columns=columns, bad=bad)
    return [example for example in examples if example is not None]


def iterate_parallel(
    path: str | PurePath | Lines,
    *,
    need_targets: bool = False,
    columns: Mapping[str, str] | None = None,
    keep_blank: bool = False,
    bad: BadItems | None = None,
) -> Iterator[Example | None]:
    """Read one file example by example; with `keep_blank`, a blank line is None instead of an error."""
    required = FIELDS if need_targets else ("source",)
    options = {"columns": columns, "keep_blank": keep_blank, "bad": bad}
    return read_examples(path, FIELDS, _example, required, **options)


def _example(record: Record) -> Example:
    return Example(record.text("source"), record.optional_text("target"))


def _two_files(
    path: str | PurePath, target_path: str | PurePath, bad: BadItems | None
) -> list[Example]:
    sources, targets = _sentences(path, bad), _sentences(target_path, bad)
    if len(sources) != len(targets):
        raise FenchelError(
            f"{path} and {target_path} must have equally many lines, "
            f"got {len(sources)} and {len(targets)}"
        )
    pairs = zip(sources, targets, strict=True)
    return [Example(source, target) for source, target in pairs if source and target]


def _sentences(path: str | PurePath, bad: BadItems | None) -> list[str]:
    """The lines of a file that has one sentence on each; a bad line that is skipped is ""."""
    lines, sentences = read_lines(path, bad), []
    for number, text in lines:
        if lines.is_blank(number, text):
            lines.bad.add(lines.error(number, "line must not be blank"))
        sentences.append(text)
    if all("\t" in text for text in sentences if text):
        hint = "names of files of pairs must end with .tsv"
        message = (
            f"files of sources or targets must not have columns, got a tab on every line; {hint}"
        )
        raise lines.error(1, message)
    return sentences
