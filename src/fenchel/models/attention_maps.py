"""The maps that the attention of a model can use, by name."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import check_known, check_number
from fenchel.errors import FenchelError
from fenchel.nn.maps import Budget, Entmax, Logistic, Map, Normmax, Softmax, Sparsemax
from fenchel.nn.structured import Fusedmax, Oscarmax, Pnormmax
from fenchel.operators.maps import BUDGET, ENTMAX, FUSEDMAX, NORMMAX, OSCARMAX, PNORMMAX

_PLAIN = {"softmax": Softmax, "sparsemax": Sparsemax, "logistic": Logistic}
_WITH_ALPHA = {"entmax": (Entmax, ENTMAX), "normmax": (Normmax, NORMMAX)}
_WITH_STRENGTH = {
    "budget": (Budget, BUDGET),
    "fusedmax": (Fusedmax, FUSEDMAX),
    "oscarmax": (Oscarmax, OSCARMAX),
    "pnormmax": (Pnormmax, PNORMMAX),
}
ATTENTION_MAPS = (*_PLAIN, *_WITH_ALPHA, *_WITH_STRENGTH)
UNNORMALIZED = ("logistic", "budget")  # maps whose weights do not sum to one


def attention_map(name: str, alpha: float | str = 1.5, strength: float | None = None) -> Map:
    """The module of a map, from the settings of a model; errors name these settings.

    Args:
        name: one of `ATTENTION_MAPS`.
        alpha: α of "entmax" and "normmax", a number or "learned"; other maps do not use a number.
        strength: the strength of "fusedmax" and "oscarmax", p of "pnormmax", or k of "budget"; the
            default of the map if None.

    >>> attention_map("entmax", alpha="learned")
    Entmax(alpha='learned')
    >>> attention_map("fusedmax", strength=0.2)
    Fusedmax(strength=0.2)
    """
    check_known("attention_map", name, ATTENTION_MAPS)
    if isinstance(alpha, str) and (alpha != "learned" or name not in _WITH_ALPHA):
        expected = "a number or 'learned'" if name in _WITH_ALPHA else f"a number for {name}"
        raise FenchelError(f"attention_alpha must be {expected}, got {alpha!r}")
    if strength is not None and name not in _WITH_STRENGTH:
        raise FenchelError(f"attention_strength cannot be combined with {name}, got {strength!r}")
    if name in _WITH_ALPHA:
        module, operator = _WITH_ALPHA[name]
        if not isinstance(alpha, str):
            check_number(alpha, name="attention_alpha", above=operator.above)
        return module(alpha)
    if name in _WITH_STRENGTH:
        module, operator = _WITH_STRENGTH[name]
        if strength is None:
            return module()
        return module(check_number(strength, name="attention_strength", above=operator.above))
    return _PLAIN[name]()


def learned_alpha(attention: object) -> dict[str, Tensor]:
    """The α of a map under the name "attention", if it is learned.

    >>> learned_alpha(attention_map("entmax", alpha="learned"))
    {'attention': tensor(1.5000)}
    >>> learned_alpha(attention_map("softmax"))
    {}
    """
    if isinstance(attention, Entmax | Normmax) and attention.exponent.is_learned:
        return {"attention": torch.as_tensor(attention.alpha).detach()}
    return {}
