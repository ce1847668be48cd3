"""The name by which a shell calls this installation of `fenchel`."""

from __future__ import annotations

import shlex
import shutil
import sys
import sysconfig
from pathlib import Path


def program() -> str:
    """The command that runs this installation, quoted for a shell.

    It is `fenchel` if that is this installation's script on PATH, else the path of the script, from the
    working directory where it is below that. Without a script it is `python -m fenchel`.
    """
    script = shutil.which("fenchel", path=sysconfig.get_path("scripts"))
    if script is None:
        return shlex.join([sys.executable, "-m", "fenchel"])
    on_path = shutil.which("fenchel")
    if on_path is not None and Path(on_path).samefile(script):
        return "fenchel"
    here, path = Path.cwd(), Path(script)
    below = here in path.parents[1:]  # in its own folder, its name alone would be searched on PATH
    return shlex.quote(str(path.relative_to(here) if below else path))
