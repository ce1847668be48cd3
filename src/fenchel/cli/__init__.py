"""The command line: `fenchel --help`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fenchel.cli.printable import one_line
from fenchel.errors import FenchelError
from fenchel.extras import require

BROKEN_RULE, INTERRUPTED = 2, 130
LONG = ("train", "reproduce")
GO_ON = "the same command goes on from the last checkpoint, if one was written"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code: 0, 2 for a broken rule, 130 when interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with failures_told(goes_on=bool(given) and given[0] in LONG):
        require("typer", extra="train")
        require("rich", extra="train")
        from fenchel.cli.app import app
        from fenchel.cli.arguments import spread
        from fenchel.cli.program import program

        # Shells complete a bare name, so completion is installed for that, whatever is on PATH.
        completes = any(word.endswith("-completion") for word in given)
        name = "fenchel" if completes else program()
        app(args=spread(given), prog_name=name, complete_var="_FENCHEL_COMPLETE")


@contextmanager
def failures_told(*, goes_on: bool) -> Iterator[None]:
    """Leave with one message and an exit code where a rule is broken, a file fails, or a person stops.

    `goes_on` says that what was stopped goes on when it is called again.
    """
    interrupted = f"interrupted; {GO_ON}" if goes_on else "interrupted"
    _escape_what_cannot_be_printed()
    try:
        yield
    except FenchelError as error:
        _complain(str(error))
        sys.exit(BROKEN_RULE)
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        _complain(f"{where}{error.strerror or error}")
        sys.exit(BROKEN_RULE)
    except KeyboardInterrupt:
        _complain(interrupted)
        sys.exit(INTERRUPTED)
    except SystemExit as left:
        # Typer and Lightning both turn an interruption into an exit of their own.
        if left.code == INTERRUPTED or isinstance(left.__context__, KeyboardInterrupt):
            _complain(interrupted)
            sys.exit(INTERRUPTED)
        raise


def _escape_what_cannot_be_printed() -> None:
    """Write a letter that the output's encoding lacks as its number, rather than stop there."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(message: str) -> None:
    """One red message; plain where it is not a terminal, or one without colours."""
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    red, plain = ("\033[31m", "\033[0m") if coloured else ("", "")
    print(f"{red}fenchel: {one_line(message)}{plain}", file=sys.stderr)
