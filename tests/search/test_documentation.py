"""The code blocks of docs/search.md run and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "search.md"


def test_the_page_shows_what_its_code_prints(capsys):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert sum(language == "python" for language, _ in blocks) == 5
    namespace: dict[str, object] = {}
    printed = ""
    for language, block in blocks:
        if language == "python":
            exec(compile(block, str(PAGE), "exec"), namespace)
            printed = capsys.readouterr().out
        else:
            assert block == printed
