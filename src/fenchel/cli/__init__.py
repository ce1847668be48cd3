"""The command line: `fenchel --help`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fenchel.errors import FenchelError
from fenchel.extras import require
from fenchel.printable import one_line

FAILED, INTERRUPTED = 2, 130
RESUMABLE = ("train", "resume", "reproduce")
RESUME = "the same command resumes from the last checkpoint, if one was written"
TAKE_FILES = ("train", "evaluate", "report", "compare")
FILE_OPTIONS = ("--train", "--dev", "--test", "--data")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code: 0, 2 after an error, 130 when interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with errors_printed(resumable=bool(given) and given[0] in RESUMABLE):
        require("typer", extra="train")
        require("rich", extra="train")
        from fenchel.cli.app import make_command
        from fenchel.cli.program import program

        # Shells complete a bare name, so completion is installed for that, whatever is on PATH.
        completes = any(word.endswith("-completion") for word in given)
        name = "fenchel" if completes else program()
        make_command()(args=repeat_options(given), prog_name=name, complete_var="_FENCHEL_COMPLETE")


@contextmanager
def errors_printed(*, resumable: bool) -> Iterator[None]:
    """Turn errors, failures of files and interruptions into a message and an exit code.

    `resumable` says that the same command resumes what was interrupted.
    """
    interrupted = f"interrupted; {RESUME}" if resumable else "interrupted"
    _escape_unprintable()
    try:
        yield
    except FenchelError as error:
        _print_error(str(error))
        sys.exit(FAILED)
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        _print_error(f"{where}{error.strerror or error}")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        _print_error(interrupted)
        sys.exit(INTERRUPTED)
    except SystemExit as left:
        # Typer and Lightning both turn an interruption into an exit of their own.
        if left.code == INTERRUPTED or isinstance(left.__context__, KeyboardInterrupt):
            _print_error(interrupted)
            sys.exit(INTERRUPTED)
        raise


def _escape_unprintable() -> None:
    """Escape characters that the encoding of the output lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_error(message: str) -> None:
    """Print a message, in red on a terminal with colours."""
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    red, plain = ("\033[31m", "\033[0m") if coloured else ("", "")
    print(f"{red}fenchel: {one_line(message)}{plain}", file=sys.stderr)


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """Repeat an option for every file behind it, so that patterns of the shell can be used.

    This applies only where the command's own argument (a recipe, a run) comes first, so that it cannot
    be taken for a file.

    >>> repeat_options(["train", "inflection", "--train", "a", "b", "--out", "run"])
    ['train', 'inflection', '--train', 'a', '--train', 'b', '--out', 'run']
    """
    command, first = [*arguments, "", ""][:2]
    if command not in TAKE_FILES or first.startswith("-"):
        return list(arguments)
    result, option, files = [], "", 0
    for argument in arguments:
        if argument.startswith("-") and argument != "-":
            option, files = (argument if argument in FILE_OPTIONS else ""), 0
        elif option:
            files += 1
            if files > 1:
                result.append(option)
        result.append(argument)
    return result
