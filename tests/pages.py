"""The pages that people read, as code that runs and links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")  # not those to the web


def code_of(page: Path) -> list[str]:
    return CODE.findall(page.read_text(encoding="utf-8"))


def run_code(page: Path) -> dict[str, Any]:
    """Run the blocks one after the other, as a reader would type them; what they define."""
    namespace: dict[str, Any] = {}
    for block in code_of(page):
        exec(compile(block, str(page), "exec"), namespace)
    return namespace


def dead_links(page: Path) -> list[str]:
    """The files that a page names and that do not exist."""
    names = LINK.findall(page.read_text(encoding="utf-8"))
    return [name for name in names if not (page.parent / name).exists()]
