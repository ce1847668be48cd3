"""What a classifier attends to, drawn: for a report and for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from fenchel.continuous.mixture import Mixture
from fenchel.models.documents import density_heights
from fenchel.tasks.texts.classification import Classification

if TYPE_CHECKING:
    from fenchel.report import Block, HighlightedText
    from fenchel.training.run import Run

GROUPINGS = {"fusedmax": "segments", "oscarmax": "clusters"}
COLOURS = ("blue", "red", "green", "magenta", "yellow", "cyan")  # of clusters, as in a report


def highlighted(run: Run, found: Classification) -> HighlightedText:
    """The words shaded by weight; the segments of fusedmax joined, the clusters of oscarmax coloured."""
    from fenchel.report import HighlightedText

    model: Any = run.task.model  # pyright: ignore[reportAttributeAccessIssue]
    discrete = found.density is None or model.attention == "combined"
    grouping = GROUPINGS.get(model.attention_map) if discrete else None
    weights = found.weights or [1.0] * len(found.words)
    return HighlightedText(found.words, weights, found.caption, grouping)


def explain(run: Run, found: Classification) -> list[Block]:
    """The blocks of a report that show what was attended."""
    from fenchel.report import density_over_words

    blocks: list[Block] = [] if found.weights is None else [highlighted(run, found)]
    if found.density is not None:
        config: Any = run.task.model  # pyright: ignore[reportAttributeAccessIssue]
        count = len(found.words)
        mixture = Mixture(*(part.unsqueeze(0) for part in found.density))
        heights = density_heights(mixture, torch.tensor([count]), count, config.continuous_alpha)
        picture = density_over_words(found.words, heights[0].tolist(), found.caption)
        blocks = [*blocks, picture] if config.attention == "combined" else [picture]
    return blocks


def styled_words(text: HighlightedText) -> Iterator[tuple[str, str]]:
    """Words followed by a space, with their styles for a terminal.

    Words without weight are dim, segments underlined, clusters coloured.
    """
    groups = text.groups()
    for place, (word, group) in enumerate(zip(text.words, groups, strict=True)):
        style = "" if text.weights[place] > 0 else "dim"
        if group is not None and text.grouping == "clusters":
            style = COLOURS[group % len(COLOURS)]
        following = groups[place + 1] if place + 1 < len(groups) else None
        if group is not None and text.grouping == "segments":
            joined = " " if following == group else ""
            yield f"{word}{joined}", "underline"
            if not joined:
                yield " ", ""
        else:
            yield f"{word} ", style
