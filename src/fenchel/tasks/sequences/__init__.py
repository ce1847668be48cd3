"""Sequences to sequences: inflection, translation, summarization."""

from fenchel.tasks.search_options import SearchConfig
from fenchel.tasks.sequences.config import DataConfig
from fenchel.tasks.sequences.decoding import decode
from fenchel.tasks.sequences.metrics import AnswerMetrics, evaluate_answers
from fenchel.tasks.sequences.seq2seq import Seq2SeqTask
from fenchel.tasks.sequences.task import SequenceTask
from fenchel.tasks.sequences.transformer import TransformerTask

__all__ = [
    "AnswerMetrics",
    "DataConfig",
    "SearchConfig",
    "Seq2SeqTask",
    "SequenceTask",
    "TransformerTask",
    "decode",
    "evaluate_answers",
]
