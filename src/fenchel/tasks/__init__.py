"""Tasks: how files are read, models built, and results shown, one package or file per task."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from fenchel.training import Run, Task


def _task(module: str, name: str) -> Callable[[], type[Task]]:
    return lambda: getattr(import_module(f"fenchel.tasks.{module}"), name)


TASKS: dict[str, Callable[[], type[Task]]] = {
    "sequences": _task("sequences.seq2seq", "Seq2SeqTask"),
    "transformer": _task("sequences.transformer", "TransformerTask"),
    "language-model": _task("language_model.task", "LanguageModelTask"),
    "documents": _task("texts.documents", "DocumentTask"),
    "nli": _task("texts.nli", "EntailmentTask"),
    "vqa": _task("visual_questions", "VisualQuestionTask"),
    "multilabel": _task("multilabel.task", "MultilabelTask"),
}
"""The tasks by the kind under which runs store them; each is imported when it is first used."""


def load_run(folder: str | Path) -> Run:
    """The run in a folder, of whichever task."""
    return Run.load(folder, TASKS)


__all__ = ["TASKS", "load_run"]
