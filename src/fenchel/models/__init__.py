"""Models with the library's maps inside and its losses at the output; one architecture a package."""

from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig, Statistics

__all__ = ["Seq2Seq", "Seq2SeqConfig", "Statistics"]
