"""A recurrent encoder and decoder with attention: any map attends, any entmax loss trains."""

from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.models.seq2seq.model import Attended, Seq2Seq
from fenchel.models.seq2seq.stepper import Seq2SeqStepper

__all__ = ["Attended", "Seq2Seq", "Seq2SeqConfig", "Seq2SeqStepper"]
