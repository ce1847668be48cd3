"""`import fenchel` loads torch and the maps; everything heavy waits until it is needed."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "numba",
    "llvmlite",
    "triton",
    "matplotlib",
    "lightning",
    "scipy",
    "mpmath",
    "sklearn",
    "pydantic",
)

SCRIPT = f"""
import sys
import torch
before = set(sys.modules)
import fenchel
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(sorted(loaded & set({HEAVY!r})))
"""


def test_importing_the_library_loads_nothing_heavy():
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_every_public_name_exists_and_has_a_docstring():
    import fenchel

    for name in fenchel.__all__:
        assert getattr(fenchel, name).__doc__, name


def test_configurations_are_made_without_pydantic():
    script = "import sys; from fenchel.recipes import make_recipe; "
    script += "make_recipe('inflection'); print('pydantic' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"
