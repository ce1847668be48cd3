"""Certificates hold for every model that a search accepts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fenchel import FenchelError
from fenchel.search import (
    Answer,
    PrefixStepper,
    autocomplete,
    beam_search,
    exact_search,
    sample,
    support,
)
from tests.search.models import EOS

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
ROUNDING = 1e-12  # of a sum of logarithms in float64, and of its exponential

ENTRIES = st.sampled_from([0.0, 0.0, 0.25, 0.5, 0.498, 0.502, 1e-3, 1e-30]) | st.floats(0, 1)
TOTALS = st.sampled_from([1.0, 1.0, 1.00005, 1.015, 1.019, 0.5, 0.0]) | st.floats(0, 1.0199)


@dataclass(frozen=True)
class Automaton:
    """A model with finitely many states: each has a row of probabilities; ends after `depth`."""

    rows: tuple[tuple[float, ...], ...]
    following: tuple[tuple[int, ...], ...]
    depth: int
    dtype: torch.dtype

    def __call__(self, prefix: tuple[int, ...]) -> Tensor:
        if len(prefix) >= self.depth:
            return torch.eye(len(self.rows[0]), dtype=self.dtype)[EOS]
        state = 0
        for token in prefix:
            state = self.following[state][token]
        return torch.tensor(self.rows[state], dtype=self.dtype)

    def sequences(self) -> dict[tuple[int, ...], float]:
        """Return the log-probability of every sequence, with entries clamped to [0, 1]."""
        found: dict[tuple[int, ...], float] = {}
        waiting: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        while waiting:
            prefix, score = waiting.pop()
            for token, p in enumerate(self(prefix).tolist()):
                if p > 0 and token == EOS:
                    found[prefix] = score + math.log(min(p, 1.0))
                elif p > 0:
                    waiting.append(((*prefix, token), score + math.log(min(p, 1.0))))
        return found

    def may_be_rejected(self) -> bool:
        """Whether a row is not a distribution up to rounding, or is all zero."""
        rows = torch.tensor(self.rows, dtype=self.dtype)
        fine = ((rows >= -1e-4) & (rows <= 1 + 1e-4)).all(-1) & (rows.double().sum(-1) <= 1.0199)
        return not bool((fine & (rows.amax(-1) > 0)).all())


@st.composite
def rows(draw: st.DrawFn, size: int) -> tuple[float, ...]:
    """Draw probabilities with ties, zeros and entries above 1, scaled to a random total."""
    entries = draw(st.lists(ENTRIES, min_size=size, max_size=size))
    total, mass = draw(TOTALS), math.fsum(entries)
    scaled = [p * total / mass if mass > 0 else 0.0 for p in entries]
    if draw(st.integers(0, 9)) == 0:
        scaled[draw(st.integers(0, size - 1))] = draw(st.sampled_from([-0.01, -1e-6, math.nan]))
    return tuple(scaled)


@st.composite
def automata(draw: st.DrawFn, size: int, dtype: torch.dtype) -> Automaton:
    states = draw(st.integers(1, 4))
    targets = st.lists(st.integers(0, states - 1), min_size=size, max_size=size).map(tuple)
    return Automaton(
        rows=tuple(draw(rows(size)) for _ in range(states)),
        following=tuple(draw(targets) for _ in range(states)),
        depth=draw(st.integers(0, 3)),
        dtype=dtype,
    )


@st.composite
def batches(draw: st.DrawFn) -> list[Automaton]:
    """Draw a batch of models, one per sentence."""
    size, dtype = draw(st.integers(3, 5)), draw(st.sampled_from(DTYPES))
    return draw(st.lists(automata(size, dtype), min_size=1, max_size=3))


def law_certificates_hold(
    models: list[Automaton], *, width: int, answers: int, max_length: int, nodes: int
) -> None:
    """What each search proves holds for all sequences, enumerated by brute force."""
    stepper, sizes = PrefixStepper(models), {"width": width, "max_length": max_length}
    searches = {
        "beam": partial(beam_search, answers=answers),
        "exact": partial(exact_search, answers=answers, nodes=nodes),
        "support": partial(support, limit=answers, nodes=nodes),
    }
    for name, search in searches.items():
        try:
            found = search(stepper, **sizes)
        except FenchelError:
            assert any(model.may_be_rejected() for model in models), (
                f"{name} rejected a valid model"
            )
        else:
            for answer, model in zip(found, models, strict=True):
                check(answer, model.sequences())


def law_sample_probabilities_are_those_of_the_model(models: list[Automaton], *, seed: int) -> None:
    """Samples are possible sequences, and `autocomplete` agrees with their probabilities."""
    stepper, generator = PrefixStepper(models), torch.Generator().manual_seed(seed)
    try:
        drawn = [hypotheses for (hypotheses,) in sample(stepper, max_length=4, generator=generator)]
        completions = autocomplete(stepper, [hypothesis.tokens for hypothesis in drawn])
    except FenchelError:
        assert any(model.may_be_rejected() for model in models), "a valid model was rejected"
        return
    for hypothesis, completion, model in zip(drawn, completions, models, strict=True):
        assert hypothesis.finished
        score = model.sequences()[hypothesis.tokens]
        assert hypothesis.log_probability == pytest.approx(score, rel=ROUNDING, abs=ROUNDING)
        steps = math.fsum(math.log(step.probability) for step in completion.steps)
        assert steps == pytest.approx(score, rel=ROUNDING, abs=ROUNDING)


def check(answer: Answer, sequences: dict[tuple[int, ...], float]) -> None:
    """Compare an answer with the log-probabilities of all sequences."""
    found = {h.tokens: h.log_probability for h in answer.hypotheses if h.finished}
    assert len(found) in (0, len(answer.hypotheses))
    for tokens, score in found.items():
        assert score == pytest.approx(sequences[tokens], rel=ROUNDING, abs=ROUNDING)
    bound = math.log(answer.dropped) if answer.dropped > 0 else -math.inf
    missing = [score for tokens, score in sequences.items() if tokens not in found]
    assert all(at_most(score, bound) for score in missing)
    if answer.certified:
        assert all(at_most(score, answer.best.log_probability) for score in sequences.values())
    if answer.complete:
        assert found.keys() == sequences.keys()
    if answer.single:
        assert len(sequences) == 1


def at_most(score: float, bound: float) -> bool:
    return score <= bound or score - bound <= ROUNDING * (1 + abs(score))


CERTIFICATE_ARGUMENTS = {
    "models": batches(),
    "width": st.integers(1, 4),
    "answers": st.integers(1, 4),
    "max_length": st.integers(1, 4),
    "nodes": st.sampled_from([1, 3, 1000]),
}


@settings(max_examples=200)
@given(**CERTIFICATE_ARGUMENTS)
def test_certificates_hold(**arguments: Any) -> None:
    law_certificates_hold(**arguments)


@settings(max_examples=50)
@given(models=batches(), seed=st.integers(0, 2**16))
def test_sample_probabilities_are_those_of_the_model(models: list[Automaton], seed: int) -> None:
    law_sample_probabilities_are_those_of_the_model(models, seed=seed)
