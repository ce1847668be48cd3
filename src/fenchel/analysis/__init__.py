"""Looking inside models: attention heads of any model, figures of the maps, reports of runs."""

from fenchel.analysis.alphas import alpha_histogram, alpha_trajectories
from fenchel.analysis.attention import Attention
from fenchel.analysis.capturing import capture
from fenchel.analysis.examples import ExampleSentence, Head
from fenchel.analysis.head_analysis import heads
from fenchel.analysis.head_table import HeadTable
from fenchel.analysis.roles import ROLES
from fenchel.analysis.unsure import UnsureSentence
from fenchel.data.sentences import Sentences, Tokens, word_numbers

__all__ = [
    "ROLES",
    "Attention",
    "ExampleSentence",
    "Head",
    "HeadTable",
    "Sentences",
    "Tokens",
    "UnsureSentence",
    "alpha_histogram",
    "alpha_trajectories",
    "capture",
    "heads",
    "word_numbers",
]
