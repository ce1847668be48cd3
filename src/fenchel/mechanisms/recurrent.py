"""Attention for recurrent models: one query per step over the states of an encoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, final

import torch
from torch import Tensor, nn

from fenchel.checks import check_boolean, check_device, check_tensor
from fenchel.errors import FenchelError
from fenchel.maps.sparsemax import sparsemax
from fenchel.mechanisms.masks import check_broadcast, check_lengths, within


class Map(Protocol):
    """Anything that turns scores into probabilities: a map of the library or one of its modules."""

    def __call__(self, scores: Tensor, /, *, dim: int, mask: Tensor | None) -> Tensor: ...


class _RecurrentAttention(nn.Module, ABC):
    """p = map(score(query, key)), context = Σ p · value; subclasses define the score."""

    key_projection: nn.Linear

    def __init__(self, query_size: int, key_size: int, map: Map) -> None:
        super().__init__()
        if not callable(map):
            raise FenchelError(f"map must be a callable (scores, dim=…, mask=…), got {map!r}")
        self.query_size, self.key_size, self.map = query_size, key_size, map

    @abstractmethod
    def project_keys(self, keys: Tensor) -> Tensor:
        """The part of the scores that depends on the keys alone, computed once for all steps."""

    @abstractmethod
    def scores(self, query: Tensor, projected_keys: Tensor) -> Tensor:
        """(B, T, L) from queries (B, T, query_size) and projected keys (B, L, …)."""

    def forward(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor | None = None,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        projected_keys: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Context and weights.

        Args:
            query: (B, query_size) for one step, or (B, T, query_size) for all steps (teacher forcing).
            keys: (B, L, key_size).
            values: (B, L, value_size), by default the keys.
            lengths: integers (B,), the number of valid keys.
            mask: boolean, True marks what may be attended; broadcasts to the weights.
            projected_keys: `project_keys(keys)`, by default computed here.

        Returns:
            The context (B, value_size) or (B, T, value_size), and the weights (B, L) or (B, T, L).
        """
        values = keys if values is None else values
        self._check_inputs(query, keys, values)
        projected = self._projected(keys, projected_keys)
        steps = query if query.ndim == 3 else query.unsqueeze(1)
        scores = self.scores(steps, projected)
        scores = scores if query.ndim == 3 else scores.squeeze(1)
        weights = self.map(scores, dim=-1, mask=self._visible(scores, lengths, mask))
        if query.ndim == 3:
            return weights @ values, weights
        return (weights.unsqueeze(1) @ values).squeeze(1), weights

    def extra_repr(self) -> str:
        name = getattr(self.map, "__name__", None)
        shown = "" if name is None or self.map is sparsemax else f", map={name}"
        return f"query_size={self.query_size}, key_size={self.key_size}{shown}"

    def _visible(
        self, scores: Tensor, lengths: Tensor | None, mask: Tensor | None
    ) -> Tensor | None:
        if mask is not None:
            check_boolean(mask)
            check_broadcast(mask, tuple(scores.shape), "mask")
            check_device(mask, scores, "mask")
        if lengths is None:
            return mask
        keys = scores.shape[-1]
        check_lengths(lengths, tuple(scores.shape[:1]), keys, scores)
        valid = within(lengths, keys)
        valid = valid.unsqueeze(1) if scores.ndim == 3 else valid
        return valid if mask is None else valid & mask

    def _projected(self, keys: Tensor, given: Tensor | None) -> Tensor:
        if given is None:
            return self.project_keys(keys)
        check_tensor(given, "projected_keys")
        wanted = (*keys.shape[:2], self.key_projection.out_features)
        if tuple(given.shape) != wanted:
            raise _wrong_shape("projected_keys", wanted, given)
        return given

    def _check_inputs(self, query: Tensor, keys: Tensor, values: Tensor) -> None:
        for name, tensor in {"query": query, "keys": keys, "values": values}.items():
            check_tensor(tensor, name)
        if query.ndim not in (2, 3) or query.shape[-1] != self.query_size:
            shapes = f"(B, {self.query_size}) or (B, T, {self.query_size})"
            raise _wrong_shape("query", shapes, query)
        if keys.ndim != 3 or keys.shape[-1] != self.key_size:
            raise _wrong_shape("keys", f"(B, L, {self.key_size})", keys)
        if keys.shape[0] != query.shape[0]:
            got = f"{query.shape[0]} and {keys.shape[0]}"
            raise FenchelError(f"query and keys must have the same batch size, got {got}")
        if values.ndim != 3 or values.shape[:2] != keys.shape[:2]:
            raise _wrong_shape("values", f"({keys.shape[0]}, {keys.shape[1]}, …)", values)


def _wrong_shape(name: str, wanted: object, got: Tensor) -> FenchelError:
    return FenchelError(f"{name} must have the shape {wanted}, got {tuple(got.shape)}")


@final
class AdditiveAttention(_RecurrentAttention):
    r"""Scores vᵀ tanh(W q + U k + b), then any map.

    A decoder that attends at every step can compute U k + b once:

        projected = layer.project_keys(states)
        for … :
            context, weights = layer(query, states, lengths=lengths, projected_keys=projected)

    Args:
        query_size, key_size, hidden_size: sizes of q, of k, and of the tanh layer.
        map: a callable `(scores, dim=…, mask=…)`, by default `fenchel.sparsemax`. The parameters of
            a module, such as `fenchel.nn.Entmax(alpha="learned")`, are learned with those of the layer.

    Reference: Bahdanau, Cho & Bengio (2015), *Neural Machine Translation by Jointly Learning to
    Align and Translate*.

    >>> import torch
    >>> layer = AdditiveAttention(query_size=4, key_size=6, hidden_size=8)
    >>> context, weights = layer(torch.randn(2, 4), torch.randn(2, 5, 6))
    >>> context.shape, weights.shape
    (torch.Size([2, 6]), torch.Size([2, 5]))
    """

    def __init__(
        self, query_size: int, key_size: int, hidden_size: int, map: Map = sparsemax
    ) -> None:
        super().__init__(query_size, key_size, map)
        self.query_projection = nn.Linear(query_size, hidden_size, bias=False)
        self.key_projection = nn.Linear(key_size, hidden_size)
        self.direction = nn.Linear(hidden_size, 1, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        """U k + b, (B, L, hidden_size)."""
        return self.key_projection(keys)

    def scores(self, query: Tensor, projected_keys: Tensor) -> Tensor:
        hidden = self.query_projection(query).unsqueeze(-2) + projected_keys.unsqueeze(-3)
        return self.direction(torch.tanh(hidden)).squeeze(-1)


@final
class GeneralAttention(_RecurrentAttention):
    r"""Scores qᵀ W k, then any map. W k can be computed once, as in `AdditiveAttention`.

    Args:
        query_size, key_size: sizes of q and of k.
        map: a callable `(scores, dim=…, mask=…)`, by default `fenchel.sparsemax`.

    Reference: Luong, Pham & Manning (2015), *Effective Approaches to Attention-based Neural Machine
    Translation*.

    >>> import torch
    >>> layer = GeneralAttention(query_size=4, key_size=6)
    >>> context, weights = layer(torch.randn(2, 3, 4), torch.randn(2, 5, 6))
    >>> context.shape, weights.shape
    (torch.Size([2, 3, 6]), torch.Size([2, 3, 5]))
    """

    def __init__(self, query_size: int, key_size: int, map: Map = sparsemax) -> None:
        super().__init__(query_size, key_size, map)
        self.key_projection = nn.Linear(key_size, query_size, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        """W k, (B, L, query_size)."""
        return self.key_projection(keys)

    def scores(self, query: Tensor, projected_keys: Tensor) -> Tensor:
        return query @ projected_keys.mT
