"""The options of `fenchel predict` that tasks of sequences add."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fenchel.errors import FenchelError
from fenchel.tasks.search_options import GenerationOptions

PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class PredictOptions(GenerationOptions):
    """The options of predictions."""

    lattice: bool = False
    """Draw all answers as a lattice."""
    autocomplete: bool = False
    """Show the candidates after every symbol."""
    picture: Path | None = None
    """Save the first line's lattice or candidates as a picture (.png, .svg, .pdf)."""
    language: str | None = None
    """Language of lines that do not name theirs (inflection)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.picture is not None and self.picture.suffix.lower() not in PICTURES:
            endings = ", ".join(PICTURES)
            raise FenchelError(f"--picture must end with one of {endings}, got {self.picture}")
