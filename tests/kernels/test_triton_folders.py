"""The folders of the GPU kernels import one way, in the order that their package tells."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fenchel

PACKAGE = "fenchel.kernels.triton"
ROOT = Path(fenchel.__file__).parent / "kernels" / "triton"
TOLD = ast.get_docstring(ast.parse((ROOT / "__init__.py").read_text())) or ""
ORDER = re.findall(r"^    (\w+) {2,}", TOLD, flags=re.MULTILINE)
APART = ORDER[-4:]  # these do not import from each other


def _imported_from(file: Path) -> set[str]:
    """Folders of the package, and files at its top."""
    nodes = ast.walk(ast.parse(file.read_text()))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[3] for name in modules if name.startswith(f"{PACKAGE}.")}


def test_every_folder_is_told_of() -> None:
    assert sorted(ORDER) == sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_imports_from_those_above_it_alone(folder: str) -> None:
    above = set(ORDER[: ORDER.index(folder) + 1])
    if folder in APART:
        above -= set(APART) - {folder}
    for file in (ROOT / folder).glob("*.py"):
        assert _imported_from(file) <= above, file


def test_what_is_called_does_not_call_each_other() -> None:
    for file in ROOT.glob("*.py"):
        assert _imported_from(file) <= set(ORDER), file
