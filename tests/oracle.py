"""The maps, losses and derivatives by their definitions, in 60-digit arithmetic and by bisection.

Nothing here is shared with the library: a threshold is found by halving an interval, a derivative
by a central difference whose step is far below the digits that are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import pytest

mpmath = pytest.importorskip("mpmath")
mpf = mpmath.mpf

DIGITS = 60
STEP = mpf("1e-15")

Row = tuple[float, ...]


def _digits(function: Callable, args: tuple) -> int:
    """p = t^{1/(α−1)} needs the digits of t, which are α − 1 times as many."""
    steep = function.__name__ in ("entmax", "normmax") and args[-1] > 4
    return int(DIGITS * (args[-1] - 1)) if steep else DIGITS


def _at_full_precision(function):
    def precise(*args):
        with mpmath.workdps(_digits(function, args)):
            return function(*args)

    return lru_cache(maxsize=None)(precise)


def _root(decreasing: Callable[[mpf], mpf], low: mpf, high: mpf) -> mpf:
    for _ in range(int(3.5 * mpmath.mp.dps)):  # 2^-3.5 is below 0.1: one digit and a bit
        middle = (low + high) / 2
        if decreasing(middle) >= 0:
            low = middle
        else:
            high = middle
    return low


def _deformed_exponential(u: mpf, eps: mpf) -> mpf:
    if eps == 0:
        return mpmath.exp(u)
    base = 1 + eps * u
    return base ** (1 / eps) if base > 0 else mpf(0)


@_at_full_precision
def entmax(scores: Row, alpha: float | mpf) -> list[mpf]:
    """p_i = [1 + (α−1)(x_i − A)]_+^{1/(α−1)} with Σp = 1."""
    peak = max(mpf(x) for x in scores)
    shifted, eps = [mpf(x) - peak for x in scores], mpf(alpha) - 1
    present = [x for x in shifted if x > -mpmath.inf]

    def excess(normalizer: mpf) -> mpf:
        return sum(_deformed_exponential(x - normalizer, eps) for x in present) - 1

    count = mpf(len(present))
    upper = mpmath.log(count) if eps == 0 else (1 - count**-eps) / eps
    normalizer = _root(excess, mpf(0), upper)
    return [
        _deformed_exponential(x - normalizer, eps) if x > -mpmath.inf else mpf(0) for x in shifted
    ]


@_at_full_precision
def normmax(scores: Row, alpha: float | mpf) -> list[mpf]:
    """p = w/Σw, w = (x − τ)_+^{1/(α−1)}, with τ such that p maximises ⟨p, x⟩ − ‖p‖_α."""
    xs, c = [mpf(x) for x in scores], 1 / (mpf(alpha) - 1)

    def weights(tau: mpf) -> list[mpf]:
        return [(x - tau) ** c if x > tau else mpf(0) for x in xs]

    def excess(tau: mpf) -> mpf:
        return sum(w ** mpf(alpha) for w in weights(tau)) - 1

    tau = _root(excess, max(xs) - 1, max(xs))
    total = sum(weights(tau))
    return [w / total for w in weights(tau)]


@_at_full_precision
def budget(scores: Row, k: float | mpf) -> list[mpf]:
    """p = clip(x − τ, 0, 1) with Σp = k."""
    xs = [mpf(x) for x in scores]

    def clipped(tau: mpf) -> list[mpf]:
        return [min(max(x - tau, mpf(0)), mpf(1)) for x in xs]

    return clipped(_root(lambda tau: sum(clipped(tau)) - mpf(k), min(xs) - 1, max(xs)))


@_at_full_precision
def tsallis(p: Sequence[float | mpf], alpha: float | mpf) -> mpf:
    """Ω_α(p) = (Σ p^α − Σ p)/(α(α−1)), Σ p log p at α = 1."""
    positive, alpha = [mpf(v) for v in p if v > 0], mpf(alpha)
    if alpha == 1:
        return sum(v * mpmath.log(v) for v in positive)
    return sum(v**alpha - v for v in positive) / (alpha * (alpha - 1))


@_at_full_precision
def entmax_loss(scores: Row, target: Row, alpha: float | mpf) -> mpf:
    """Ω(q) + Ω*(x) − ⟨q, x⟩ with Ω*(x) = ⟨p, x⟩ − Ω(p)."""
    p = entmax(scores, alpha)
    attained = sum((v - mpf(q)) * mpf(x) for v, q, x in zip(p, target, scores, strict=True))
    return tsallis(target, alpha) - tsallis(tuple(p), alpha) + attained


@_at_full_precision
def slope_in_parameter(function: Callable, scores: Row, parameter: float) -> list[mpf]:
    """∂p/∂α of a map, entry by entry."""
    above = function(scores, mpf(parameter) + STEP)
    below = function(scores, mpf(parameter) - STEP)
    return [(high - low) / (2 * STEP) for high, low in zip(above, below, strict=True)]


@_at_full_precision
def loss_slope_in_alpha(scores: Row, target: Row, alpha: float) -> mpf:
    above = entmax_loss(scores, target, mpf(alpha) + STEP)
    below = entmax_loss(scores, target, mpf(alpha) - STEP)
    return (above - below) / (2 * STEP)
