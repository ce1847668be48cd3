"""`--train a b c` means `--train a --train b --train c`, so that a shell's patterns can be used."""

from __future__ import annotations

from collections.abc import Sequence

COMMANDS = ("train", "evaluate", "report")
FILES = ("--train", "--dev", "--test", "--data")


def spread(arguments: Sequence[str]) -> list[str]:
    """The arguments with every file of a list behind an option of its own.

    Only where the command's own argument (a recipe, a run) comes first, so that it cannot be taken for
    a file.

    >>> spread(["train", "inflection", "--train", "a", "b", "--out", "run"])
    ['train', 'inflection', '--train', 'a', '--train', 'b', '--out', 'run']
    """
    command, first = [*arguments, "", ""][:2]
    if command not in COMMANDS or first.startswith("-"):
        return list(arguments)
    result, option, files = [], "", 0
    for argument in arguments:
        if argument.startswith("-") and argument != "-":
            option, files = (argument if argument in FILES else ""), 0
        elif option:
            files += 1
            if files > 1:
                result.append(option)
        result.append(argument)
    return result
