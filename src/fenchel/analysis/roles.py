"""The roles of attention heads: measures with values in [0, 1] that are high for a head with the role.

To add a role, write its measure in `measures.py`, add its values in `LayerStatistics` (`statistics.py`),
and add its name to `ROLES` and `MEASURES`.
"""

from __future__ import annotations

from typing import Any

ROLES = ("previous_token", "current_token", "next_token", "subword_merging", "interrogation")
"""The measures that are roles."""
MEASURES = (
    *("density", "uncertainty", "previous_token", "current_token", "next_token"),
    *("subword_merging", "split_word_merging", "same_word", "interrogation"),
)
"""All measures of a head."""
EVEN_MERGING = 0.5  # of a head that spreads its weight evenly over a word of two tokens

Record = dict[str, Any]


def has_role(record: Record, role: str, threshold: float) -> bool:
    """Whether the measures of a head give it a role with a confidence of at least `threshold`.

    Subword merging also requires the measure on split words: most words are single tokens, on which any
    head that attends to the same token has a high value.
    """
    if role == "subword_merging" and (record["split_word_merging"] or 0) < EVEN_MERGING:
        return False
    return record[role] is not None and record[role] >= threshold


def best_role(record: Record, threshold: float) -> Record:
    """The role of a head with the highest confidence, and this confidence; both None without a role."""
    roles = [role for role in ROLES if has_role(record, role, threshold)]
    best = max(roles, key=lambda role: record[role], default=None)
    return {"role": best, "confidence": None if best is None else record[best]}
