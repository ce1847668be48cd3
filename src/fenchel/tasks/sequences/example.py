"""One example of any task that turns a sequence into a sequence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A source, its target, and the tags that are a part of the input.

    >>> Example("draw", "drawn", tags=("english", "V", "PST", "PTCP"), group="english").target
    'drawn'

    Attributes:
        source: A lemma, a sentence, an article.
        target: The answer; None at prediction time.
        tags: Symbols put before the source, in this order: first the language if there is one
            (it is then also the `group`), then the morphological tags.
        group: Metrics are averaged over groups: the language.
    """

    source: str
    target: str | None = None
    tags: tuple[str, ...] = ()
    group: str = ""

    @property
    def has_language(self) -> bool:
        """Whether the first tag is the language."""
        return bool(self.group) and self.tags[:1] == (self.group,)
