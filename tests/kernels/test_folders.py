"""The folders of the GPU kernels and of the CPU kernels import one way, in the order that their package
tells.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import fenchel

KERNELS = Path(fenchel.__file__).parent / "kernels"
NUMBERS = {"five": 5, "six": 6}


@dataclass(frozen=True)
class Package:
    """What the docstring of a package of kernels tells of its folders."""

    name: str

    @property
    def root(self) -> Path:
        return KERNELS / self.name

    @property
    def told(self) -> str:
        return ast.get_docstring(ast.parse((self.root / "__init__.py").read_text())) or ""

    @property
    def order(self) -> list[str]:
        return re.findall(r"^    (\w+) {2,}", self.told, flags=re.MULTILINE)

    @property
    def apart(self) -> list[str]:
        """The last folders, which do not import from each other."""
        (number,) = re.findall(r"the\s+last\s+(\w+)\s+not\s+from\s+each\s+other", self.told)
        return self.order[-NUMBERS[number] :]

    def imported_from(self, file: Path) -> set[str]:
        """Folders of the package, and files at its top."""
        nodes = ast.walk(ast.parse(file.read_text()))
        modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        within = f"fenchel.kernels.{self.name}."
        return {module.split(".")[3] for module in modules if module.startswith(within)}


PACKAGES = [Package("triton"), Package("cpu")]
FOLDERS = [(package, folder) for package in PACKAGES for folder in package.order]
each_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)


@each_package
def test_every_folder_is_told_of(package: Package) -> None:
    folders = [path.parent.name for path in package.root.glob("*/__init__.py")]
    assert sorted(package.order) == sorted(folders)


@pytest.mark.parametrize(
    ("package", "folder"), FOLDERS, ids=[f"{package.name}-{folder}" for package, folder in FOLDERS]
)
def test_a_folder_imports_from_those_above_it_alone(package: Package, folder: str) -> None:
    above = set(package.order[: package.order.index(folder) + 1])
    if folder in package.apart:
        above -= set(package.apart) - {folder}
    for file in (package.root / folder).glob("*.py"):
        assert package.imported_from(file) <= above, file


@each_package
def test_what_is_called_does_not_call_each_other(package: Package) -> None:
    for file in package.root.glob("*.py"):
        assert package.imported_from(file) <= set(package.order), file
