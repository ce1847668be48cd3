"""The learned α of a model: in the log of its training, in its metrics and in charts."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from fenchel.report import Chart, Log

PREFIX = "alpha."
MEANING = "learned alpha, averaged over the heads"


class HasAlphas(Protocol):
    """A model with attention."""

    def alphas(self) -> Mapping[str, Tensor]:
        """The learned α of every layer with one: a number, or one value per head."""
        ...


def alpha_values(model: HasAlphas) -> dict[str, float]:
    """The learned α of every head, by names such as "alpha.encoder.0.3".

    >>> import torch
    >>> class Model:
    ...     def alphas(self):
    ...         return {"encoder.0": torch.tensor([1.25, 1.5]), "attention": torch.tensor(1.75)}
    >>> alpha_values(Model())
    {'alpha.encoder.0.0': 1.25, 'alpha.encoder.0.1': 1.5, 'alpha.attention': 1.75}
    """
    values = {}
    for layer, alpha in model.alphas().items():
        if alpha.ndim == 0:
            values[f"{PREFIX}{layer}"] = alpha.item()
        else:
            values |= {f"{PREFIX}{layer}.{k}": value for k, value in enumerate(alpha.tolist())}
    return values


def mean_alpha(model: HasAlphas) -> dict[str, float]:
    """The mean of the learned α over all heads as the metric "alpha", if there is any."""
    values = alpha_values(model).values()
    return {"alpha": fmean(values)} if values else {}


def alpha_range(record: Mapping[str, float]) -> list[str]:
    """The least and the largest learned α of a validation as a short text, if there is any.

    >>> alpha_range({"loss": 2.5, "alpha.encoder.0.0": 1.25, "alpha.encoder.0.1": 1.5})
    ['alpha 1.25–1.50']
    """
    values = [value for name, value in record.items() if name.startswith(PREFIX)]
    if not values:
        return []
    ends = dict.fromkeys(f"{end:.2f}" for end in (min(values), max(values)))
    return [f"alpha {'–'.join(ends)}"]


def alpha_charts(log: Log) -> list[Chart]:
    """The course of the learned α, one chart per layer with one line per head."""
    from fenchel.report import log_chart

    layers: dict[str, dict[str, str]] = {}
    for name in log:
        if name.startswith(PREFIX):
            layer, _, head = name.removeprefix(PREFIX).rpartition(".")
            if layer and head.isdigit():
                layers.setdefault(layer, {})[name] = f"head {head}"
            else:
                layers[name.removeprefix(PREFIX)] = {name: "alpha"}
    return [
        log_chart(log, f"Learned alpha: {layer.replace('.', ', layer ')}", "alpha", names)
        for layer, names in layers.items()
    ]
