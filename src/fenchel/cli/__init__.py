"""The command line: `fenchel --help`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fenchel.errors import FenchelError
from fenchel.extras import require

BROKEN_RULE, INTERRUPTED = 2, 130
GO_ON = "interrupted; the same command goes on from the last checkpoint, if one was written"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code: 0, 2 for a broken rule, 130 when interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        require("typer", extra="train")
        require("rich", extra="train")
        from fenchel.cli.app import app
        from fenchel.cli.arguments import spread

        app(args=spread(given), prog_name="fenchel")
    except FenchelError as error:
        _complain(str(error))
        sys.exit(BROKEN_RULE)
    except KeyboardInterrupt:
        _complain(GO_ON)
        sys.exit(INTERRUPTED)
    except SystemExit as left:
        # Typer and Lightning both turn an interruption into an exit of their own.
        if left.code == INTERRUPTED or isinstance(left.__context__, KeyboardInterrupt):
            _complain(GO_ON)
            sys.exit(INTERRUPTED)
        raise


def _complain(message: str) -> None:
    """One red message; plain where it is not a terminal."""
    red, plain = ("\033[31m", "\033[0m") if sys.stderr.isatty() else ("", "")
    print(f"{red}fenchel: {message}{plain}", file=sys.stderr)
