"""`python -m fenchel.cli` is `fenchel`."""

from fenchel.cli import main

main()
