"""The task of multi-label classification with linear models."""

from fenchel.tasks.multilabel.task import MultilabelTask

__all__ = ["MultilabelTask"]
