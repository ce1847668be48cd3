"""Settings of the data of sequence models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fenchel.checks import check_count
from fenchel.data.segmentation import Normalization, check_normalization


@dataclass(frozen=True)
class DataConfig:
    """How files become symbols."""

    format: Literal["inflection", "parallel"] = "parallel"
    """Columns of a line: "inflection" (lemma, form, tags) or "parallel" (source, target)."""
    segmentation: Literal["characters", "words", "subwords"] = "characters"
    """Symbols of a text: "characters", "words" or "subwords"."""
    merges: int = 8000
    """Number of merges learned for "subwords"."""
    joint: bool = False
    """Whether source and target share one segmentation and one vocabulary."""
    min_count: int = 1
    """Symbols that occur less often than this are unknown."""
    normalization: Normalization = "NFC"
    """Unicode normal form in which texts are read, written and compared; "none" keeps different encodings
    of the same letter apart."""

    def __post_init__(self) -> None:
        check_count(self.min_count, "min_count")
        check_count(self.merges, "merges", least=0)
        check_normalization(self.normalization)
