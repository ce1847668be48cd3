"""Headlines of Reuters-21578 as examples of summarization: the beginning of an article to its title."""

from __future__ import annotations

import re
from pathlib import PurePath

from fenchel.data.records import Record, read_records
from fenchel.stored_json import shortened
from fenchel.tasks.sequences.example import Example

SPLIT_OF = {"TRAIN": "train", "NOT-USED": "dev", "TEST": "test"}
FEWEST_WORDS, MOST_WORDS = 10, 80
_PARAGRAPH = re.compile(r"\n {3,}")
_SIGNATURE = re.compile(r"\s+reuter\W*$", re.IGNORECASE)


def reuters_headlines(path: str | PurePath) -> dict[str, list[Example]]:
    """Headlines of Reuters-21578: the first paragraph of a text to its title.

    The first paragraph is one sentence as a rule. Both sides are in lower case, because the titles
    are all in capitals. Left out are texts without a title or body, those whose first paragraph has
    less than 10 or more than 80 words (tables and results of companies), and repeated pairs.

    Args:
        path: JSONL with the fields lewis, title and body.

    Returns:
        "train" and "test" after the field `lewis` (the ModApte split), "dev" from the texts that
        it calls NOT-USED. What is asked in "test" or "dev" is left out of "train".
    """
    splits: dict[str, list[Example]] = {split: [] for split in SPLIT_OF.values()}
    for record in read_records(path, ("lewis", "title", "body"), ("lewis",)):
        example = _headline(record)
        if example is not None:
            splits[_split(record)].append(example)
    splits = {split: list(dict.fromkeys(examples)) for split, examples in splits.items()}
    splits["train"] = _without(splits["train"], splits["dev"] + splits["test"])
    splits["dev"] = _without(splits["dev"], splits["test"])
    return splits


def _without(examples: list[Example], others: list[Example]) -> list[Example]:
    """Return the examples whose source is not the source of another example."""
    sources = {other.source for other in others}
    return [example for example in examples if example.source not in sources]


def _split(record: Record) -> str:
    lewis = record.text("lewis")
    if lewis not in SPLIT_OF:
        names = ", ".join(SPLIT_OF)
        raise record.error(f"lewis must be one of {names}, got {shortened(lewis)}")
    return SPLIT_OF[lewis]


def _headline(record: Record) -> Example | None:
    title, body = (_text(record, name) for name in ("title", "body"))
    paragraph = _PARAGRAPH.split(_SIGNATURE.sub("", body).strip(), maxsplit=1)[0]
    lead = paragraph.lower().split()
    headline = " ".join(title.lower().split())
    if not headline or not FEWEST_WORDS <= len(lead) <= MOST_WORDS:
        return None
    return Example(" ".join(lead), headline)


def _text(record: Record, name: str) -> str:
    value = record.fields.get(name)
    if value is not None and not isinstance(value, str):
        raise record.error(f"{name} must be a text or null, got {shortened(value)}")
    return value or ""
