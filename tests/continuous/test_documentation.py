"""The code of the page on continuous attention runs, block after block."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "continuous.md"


def test_the_code_of_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == 2
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)


def test_its_pictures_exist():
    names = re.findall(r"!\[[^]]*\]\((.*?)\)", PAGE.read_text(encoding="utf-8"))
    assert len(names) == 3
    assert all((PAGE.parent / name).exists() for name in names)
