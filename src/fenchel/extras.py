"""Optional dependencies: a module that is not installed is an error that names the extra."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from fenchel.errors import FenchelError


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, which comes with the extra `fenchel[extra]`, and return it.

    >>> require("json", extra="train").loads("[1]")
    [1]
    >>> require("nowhere.at_all", extra="train")
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: nowhere must be installed with the extra fenchel[train] \
(pip install '.[train]' in a checkout of fenchel), got no module nowhere

    Only the absence of `module` itself is translated; what goes wrong inside it is raised as it is.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != package:
            raise
        # The package is on no index, so an extra is installed from a checkout.
        raise FenchelError(
            f"{package} must be installed with the extra fenchel[{extra}]"
            f" (pip install '.[{extra}]' in a checkout of fenchel), got no module {missing.name}"
        ) from missing
