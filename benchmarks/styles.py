"""Styles of operations in the picture; operations without a style are only in the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.attention import AUTOGRAD_LOOP, DISCRETE, FITTED, FITTING, LOOP
from benchmarks.registry import COPY
from fenchel.plot.style import FAINT, INK, OTHER_COLOURS, alpha_colour

VIOLET, AMBER = OTHER_COLOURS[:2]


@dataclass(frozen=True)
class Style:
    label: str
    colour: Callable[[], Any]
    line: Any = "-"


def _ours(label: str, alpha: float) -> Style:
    return Style(label, lambda: alpha_colour(alpha))


def _theirs(label: str, line: Any = "-") -> Style:
    return Style(label, lambda: FAINT, line)


STYLES = {
    COPY: Style("a copy of the scores", lambda: INK, ":"),
    "fenchel.sparsemax": _ours("sparsemax", 2.0),
    "fenchel.entmax(1.5)": _ours("1.5-entmax", 1.5),
    "fenchel.entmax(1.3)": _ours("1.3-entmax", 1.3),
    "fenchel.entmax(1.75)": _ours("1.75-entmax", 1.75),
    "fenchel.entmax(α a row)": Style("one learned α a row", lambda: AMBER),
    "adasplash.triton_entmax(1.5)": _theirs("adasplash, 1.5-entmax", "-."),
    "entmax.entmax15(k=100)": _theirs("package entmax, 1.5, k = 100", "--"),
    "entmax.entmax15": _theirs("package entmax, 1.5", (0, (1, 1))),
    "fenchel.sparsemax_loss": _ours("sparsemax", 2.0),
    "fenchel.entmax_loss(1.5)": _ours("1.5-entmax", 1.5),
    "fenchel.entmax_loss(1.3)": _ours("1.3-entmax", 1.3),
    "entmax.entmax15_loss(k=100)": _theirs("package entmax, 1.5, k = 100"),
    "entmax.entmax15_loss": _theirs("package entmax, 1.5"),
    "fenchel.attention(1.5)": _ours("1.5-entmax", 1.5),
    "fenchel.attention(2)": _ours("sparsemax", 2.0),
    "fenchel.attention(α a head)": Style("one learned α a head", lambda: AMBER),
    "all weights, entmax(1.5)": _theirs("all weights, 1.5-entmax", "--"),
    "fenchel.fusedmax": Style("fusedmax", lambda: VIOLET),
    "fenchel.oscarmax": Style("oscarmax", lambda: AMBER),
    "CPU and back, fenchel.fusedmax": Style("fusedmax, by the CPU", lambda: VIOLET, ":"),
    "CPU and back, fenchel.oscarmax": Style("oscarmax, by the CPU", lambda: AMBER, ":"),
    "fenchel.continuous.entmax(2)": _ours("fenchel", 2.0),
    LOOP: _theirs(LOOP),
    AUTOGRAD_LOOP: _theirs("the same, autograd"),
    FITTED: _ours("values fitted before", 2.0),
    FITTING: Style("with the fit", lambda: AMBER),
    DISCRETE: _theirs("softmax attention"),
}
