"""Sequences to sequences: inflection, translation, summarization."""

from fenchel.tasks.search import SearchConfig
from fenchel.tasks.sequences.config import DataConfig
from fenchel.tasks.sequences.decoding import decode
from fenchel.tasks.sequences.scores import Scores, score
from fenchel.tasks.sequences.seq2seq import Seq2SeqTask
from fenchel.tasks.sequences.task import SequenceTask
from fenchel.tasks.sequences.transformer import TransformerTask

__all__ = [
    "DataConfig",
    "Scores",
    "SearchConfig",
    "Seq2SeqTask",
    "SequenceTask",
    "TransformerTask",
    "decode",
    "score",
]
