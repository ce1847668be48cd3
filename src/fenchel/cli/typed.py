"""Lines that a person types, where a tab is hard to type."""

from __future__ import annotations

from fenchel.data import Example
from fenchel.errors import rule
from fenchel.recipes.running import Trained


def how_to_type(trained: Trained) -> str:
    """What a line looks like for this run."""
    if trained.recipe.data.format != "inflection":
        return "a text"
    languages = trained.run.codec.languages
    if len(languages) > 1:
        return f"lemma tags language, such as: draw V;PST {languages[0]} ({', '.join(languages)})"
    return "lemma tags, such as: draw V;PST"


def typed_example(trained: Trained, line: str, language: str | None) -> Example:
    """The example of a typed line: tags and language are its last words.

    A lemma may have spaces, so it is what is left. A language given as an option is not typed.
    """
    text = line.strip()
    if trained.recipe.data.format != "inflection":
        return Example(text)
    languages = trained.run.codec.languages
    words = text.replace("\t", " ").split()
    if language is None and len(languages) > 1 and words[-1:] and words[-1] in languages:
        language = words.pop()
    if len(words) < 2 or (language is None and len(languages) > 1):
        raise rule("a line has all its parts", expected=how_to_type(trained), got=repr(text))
    *lemma, tags = words
    group = language or ""
    known = tuple(tag for tag in tags.split(";") if tag)
    return Example(" ".join(lemma), None, (group, *known) if group else known, group)
