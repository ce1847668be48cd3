"""Pairs of texts, a source and its target: translation and everything that has its form.

One TSV file `source target` (or JSONL with these fields), or two files in which equal lines
belong together. A single column is a source whose target is to be predicted.
"""

from __future__ import annotations

from pathlib import PurePath

from fenchel.data.example import Example
from fenchel.data.lines import read_lines
from fenchel.data.records import read_records
from fenchel.errors import rule

LAYOUTS = (("source", "target"), ("source",))


def read_parallel(
    path: str | PurePath,
    target_path: str | PurePath | None = None,
    *,
    need_targets: bool = False,
) -> list[Example]:
    """Read pairs from one file, or from the file of the sources and the file of the targets.

    Args:
        path: The file of the pairs, or of the sources.
        target_path: The file of the targets, of as many lines.
        need_targets: Whether a line without a target is an error.
    """
    if target_path is not None:
        return _two_files(path, target_path)
    needed = ("source", "target") if need_targets else ("source",)
    examples = []
    for record in read_records(path, LAYOUTS, needed):
        target = record.text("target") if record.fields.get("target") is not None else None
        examples.append(Example(record.text("source"), target))
    return examples


def _two_files(path: str | PurePath, target_path: str | PurePath) -> list[Example]:
    sources, targets = _sentences(path), _sentences(target_path)
    if len(sources) != len(targets):
        raise rule(
            "sources and targets belong together line by line",
            expected=f"{len(sources)} lines in {target_path}, as in {path}",
            got=len(targets),
        )
    return [Example(*pair) for pair in zip(sources, targets, strict=True)]


def _sentences(path: str | PurePath) -> list[str]:
    """The lines of a file that has one sentence on each."""
    lines, sentences = read_lines(path), []
    for number, text in lines:
        if not text.strip():
            raise lines.error(number, "no sentence", expected="a sentence", got="a blank line")
        sentences.append(text)
    if all("\t" in text for text in sentences):
        expected = "a sentence a line (files of pairs have names that end with .tsv)"
        statement = "a file of sources or of targets has no columns"
        raise lines.error(1, statement, expected=expected, got="a tab on every line")
    return sentences
