"""`fenchel bench`: the repository's benchmarks on this machine."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import typer

import fenchel
from fenchel.errors import FenchelError

REPOSITORY = Path(fenchel.__file__).parents[2]


def bench(context: typer.Context) -> None:
    """Measure the maps, losses and attention on this machine: python -m benchmarks.

    All options are those of the benchmarks: --quick, --only PATTERN, --device cuda, …; --help lists them.
    """
    if (REPOSITORY / "benchmarks" / "__main__.py").is_file() and str(REPOSITORY) not in sys.path:
        sys.path.insert(0, str(REPOSITORY))
    if find_spec("benchmarks") is None:
        raise FenchelError(
            "bench requires a checkout of fenchel, installed with pip install -e '.[dev]', "
            f"got an installation in {REPOSITORY}"
        )
    import_module("benchmarks.__main__").main(context.args)
