"""Parsing of JSON text from files that may be damaged, and short representations for errors."""

from __future__ import annotations

import json
import re
from typing import Any

SHOWN = 60
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str) -> Any:
    """The value of a JSON text; a `ValueError` says why there is none.

    >>> parse_json("[1, null]")
    [1, None]
    """
    try:
        value = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("half of a surrogate pair") from error
    return value


def shortened(value: object) -> str:
    """The representation of a value, cut off where it is long.

    >>> shortened("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"
    """
    try:
        text = repr(value[: SHOWN + 1] if isinstance(value, str) else value)
    except (RecursionError, ValueError):  # nested deeply, or a number of thousands of digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
