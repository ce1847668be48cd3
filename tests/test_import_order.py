"""A module imports only from the layers below its own, and no two modules import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fenchel

ROOT = Path(fenchel.__file__).parent
# The files and folders of the package; each may import from those before it.
ORDER = (
    *("errors", "extras", "hardware", "stored_json", "settings", "printable", "bibliography"),
    *("checks", "autocast", "kernels", "operators", "maps", "losses", "regularizers"),
    *("projected_gradient", "custom", "mechanisms", "continuous", "nn", "compat"),
    *("linear", "sklearn", "__init__", "search", "plot", "report", "data", "models"),
    *("training", "tasks", "analysis", "recipes", "cli", "demo", "__main__"),
)
# Neither of these imports from the others.
APART = ({"data", "search"}, {"models", "search"})


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in ROOT.rglob("*.py")}


def runtime_nodes(node: ast.AST, *, inside_functions: bool) -> Iterator[ast.AST]:
    """The nodes of a module, without those that only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if inside_functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from runtime_nodes(child, inside_functions=inside_functions)


def imports(name: str, *, inside_functions: bool) -> set[str]:
    """The modules of the package that a module imports."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    found = set()
    for node in runtime_nodes(tree, inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else str(node.module))
    return found & set(MODULES) - {name}


def part(name: str) -> str:
    """The file or folder of the package that holds a module."""
    return "__init__" if name == "fenchel" else name.split(".")[1]


def test_every_file_and_folder_has_a_place_in_the_order():
    assert sorted(ORDER) == sorted({part(name) for name in MODULES})


@pytest.mark.parametrize("folder", [each for each in ORDER if each != "__init__"])
def test_a_module_imports_only_from_the_layers_below(folder: str):
    """Also inside functions. The root package alone imports from above: it re-exports `plot`."""
    allowed = set(ORDER[: ORDER.index(folder) + 1])
    for pair in APART:
        allowed -= pair - {folder} if folder in pair else set()
    for name in MODULES:
        if part(name) == folder:
            assert {part(each) for each in imports(name, inside_functions=True)} <= allowed, name


def test_no_modules_import_each_other():
    """Not even inside functions. Python imports the root package first, so it is left out."""
    graph = {
        name: imports(name, inside_functions=True) - {"fenchel"}
        for name in MODULES
        if name != "fenchel"
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES) - 1


def test_no_package_gives_the_name_of_its_module_to_something_else():
    """`import fenchel.a.b` binds b in fenchel.a, over whatever had that name."""
    for package, path in MODULES.items():
        if path.name != "__init__.py":
            continue
        body = ast.parse(path.read_text(encoding="utf-8")).body
        imported = [node for node in body if isinstance(node, ast.ImportFrom)]
        bound = {
            alias.asname or alias.name
            for node in imported
            for alias in node.names
            if f"{node.module}.{alias.name}" not in MODULES
        }
        bound |= {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        own = {name.rpartition(".")[2] for name in MODULES if name.startswith(f"{package}.")}
        own = {name for name in own if f"{package}.{name}" in MODULES}
        assert not bound & own, package


def test_only_the_dispatcher_leads_to_a_compiled_backend():
    """`operators/dispatch.py` imports them by name; losses do not even import the reference."""
    for name in MODULES:
        found = {each for each in imports(name, inside_functions=True) if part(each) == "kernels"}
        if part(name) == "losses":
            assert not found, name
        elif part(name) != "kernels":
            assert {each.split(".")[2] for each in found} <= {"reference"}, name
