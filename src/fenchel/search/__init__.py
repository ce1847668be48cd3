"""Search over sequences whose probabilities may be exactly zero, with certificates of optimality."""

from fenchel.search.beam import beam_search
from fenchel.search.completion import Completion, CompletionStep, autocomplete
from fenchel.search.exact import exact_search, support
from fenchel.search.hypotheses import Answer, Hypothesis
from fenchel.search.lattice import Edge, Lattice
from fenchel.search.sampling import sample
from fenchel.search.stepper import BOS, EOS, Ensemble, PrefixStepper, State, Stepper

__all__ = [
    "BOS",
    "EOS",
    "Answer",
    "Completion",
    "CompletionStep",
    "Edge",
    "Ensemble",
    "Hypothesis",
    "Lattice",
    "PrefixStepper",
    "State",
    "Stepper",
    "autocomplete",
    "beam_search",
    "exact_search",
    "sample",
    "support",
]
