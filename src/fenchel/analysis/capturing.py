"""Capturing the attention weights of a model while it runs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn

from fenchel.analysis import multihead, pretrained
from fenchel.analysis.attention import Attention, is_cross_name, kind_of, layer_numbers
from fenchel.analysis.pretrained import FusedCalls, Recorded
from fenchel.errors import FenchelError

Receive = Callable[[Attention], object]

# True while weights are computed by a call that the model did not make
COMPUTING = ContextVar("COMPUTING", default=False)


@contextmanager
def capture(model: nn.Module, receive: Receive | None = None) -> Iterator[list[Attention]]:
    """Capture the attention weights of every call of a model inside a `with` block.

    The layers may be `torch.nn.MultiheadAttention`, subclasses such as `fenchel.nn.MultiheadAttention`,
    those of a `torch.nn.TransformerEncoderLayer`, or the attention modules of a model of transformers.

    The outputs of the model do not change: weights that it does not return itself are computed beside its
    own computation. Two exceptions are equal up to rounding. Inside the block, compiled models run
    without their compiled code, and models of transformers with flash or flex attention use their "eager"
    implementation. After the block, the model is as it was.

    Weights are without dropout, but for those that a model of transformers returns in training mode.

    Args:
        model: The model.
        receive: Called with each `Attention`, which is then not kept in the list.

    >>> import torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    >>> with capture(encoder) as calls:
    ...     output = encoder(torch.randn(3, 5, 8))
    >>> [(call.name, call.kind, call.layer, tuple(call.weights.shape)) for call in calls]
    [('layers.0.self_attn', 'self', 0, (3, 2, 5, 5)), ('layers.1.self_attn', 'self', 1, (3, 2, 5, 5))]
    """
    if not isinstance(model, nn.Module):
        raise FenchelError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    calls: list[Attention] = []
    watcher = _Watcher(receive or calls.append)
    layers = {layer.module: layer for layer in attention_layers(model)}
    with ExitStack() as stack:
        if "torch._dynamo" in sys.modules:  # otherwise nothing is compiled
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(pretrained.returning_weights(model))
        for layer in layers.values():
            wrap = watcher.multihead if layer.recorded is None else watcher.pretrained
            stack.enter_context(_replaced_forward(layer.module, wrap(layer)))
        for module in model.modules():
            attention = getattr(module, "self_attn", None)
            if isinstance(module, nn.TransformerEncoderLayer) and attention in layers:
                fused = watcher.fused(module, layers[attention])
                stack.enter_context(_replaced_forward(module, fused))
        yield calls


class AttentionLayer(NamedTuple):
    """An attention module of a model.

    Attributes:
        name: The name of the module; that of its class if it is the model itself.
        layer: The number of its layer.
        module: The module.
        forward: Its own `forward`.
        recorded: Where it returns its weights, if it is a module of transformers.
    """

    name: str
    layer: int
    module: nn.Module
    forward: Callable[..., Any]
    recorded: Recorded | None


def attention_layers(model: nn.Module) -> list[AttentionLayer]:
    """The attention modules of a model; a model without any is an error."""
    theirs = pretrained.attention_modules(model)
    found = [
        (name.replace("_orig_mod.", ""), module, theirs.get(module))
        for name, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention) or module in theirs
    ]
    if not found:
        raise FenchelError(
            "a model must have attention in torch.nn.MultiheadAttention or a subclass of it, or be a "
            f"model of transformers that records its attention, got {type(model).__name__}"
        )
    cross = [recorded.is_cross if recorded else is_cross_name(name) for name, _, recorded in found]
    numbers = layer_numbers([name for name, _, _ in found], cross)
    return [
        AttentionLayer(name or type(module).__name__, number, module, module.forward, recorded)
        for number, (name, module, recorded) in zip(numbers, found, strict=True)
    ]


@final
class _Watcher:
    """Makes functions that take the place of `forward` and pass on the weights of a call.

    Hooks would not do: with hooks, a `TransformerEncoderLayer` does not use its fused implementation,
    and its outputs change.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._calls: dict[nn.Module, int] = {}
        self._queries: list[Tensor] = []  # of the last calls of self-attention, the latest first

    def multihead(self, layer: AttentionLayer) -> Callable[..., Any]:
        """The `forward` of a multi-head attention."""
        signature = inspect.signature(layer.forward)

        @wraps(layer.forward)
        def forward(*args: Any, **kwargs: Any) -> Any:
            output = layer.forward(*args, **kwargs)
            if not COMPUTING.get():
                self._observe(layer, signature.bind(*args, **kwargs).arguments)
            return output

        return forward

    def fused(
        self, module: nn.TransformerEncoderLayer, layer: AttentionLayer
    ) -> Callable[..., Any]:
        """The `forward` of an encoder layer, whose fused implementation does not call its attention."""
        original = module.forward
        signature = inspect.signature(original)

        @wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            calls = self._calls.get(layer.module)
            output = original(*args, **kwargs)
            if self._calls.get(layer.module) == calls and not module.training:
                with torch.no_grad():
                    call = multihead.fused_call(module, signature.bind(*args, **kwargs).arguments)
                self._observe(layer, call)
            return output

        return forward

    def pretrained(self, layer: AttentionLayer) -> Callable[..., Any]:
        """The `forward` of an attention module of transformers."""
        signature = inspect.signature(layer.forward)

        @wraps(layer.forward)
        def forward(*args: Any, **kwargs: Any) -> Any:
            with FusedCalls() as fused:
                output = layer.forward(*args, **kwargs)
            given = signature.bind(*args, **kwargs).arguments
            given |= given.pop("kwargs", {})
            assert layer.recorded is not None
            with torch.no_grad():
                weights = pretrained.weights_of(layer.name, layer.recorded, output, given, fused)
                self._pass_on(layer, *weights, pretrained.is_self(layer.recorded, given))
            return output

        return forward

    @torch.no_grad()
    def _observe(self, layer: AttentionLayer, given: dict[str, Any]) -> None:
        module: Any = layer.module
        token = COMPUTING.set(True)
        try:
            weights, visible = multihead.weights_of(module, layer.forward, given)
        finally:
            COMPUTING.reset(token)
        is_self = multihead.is_self(layer.name, given["query"], given["key"])
        self._pass_on(layer, weights, visible, is_self)

    def _pass_on(
        self, layer: AttentionLayer, weights: Tensor, visible: Tensor, is_self: bool
    ) -> None:
        self._calls[layer.module] = self._calls.get(layer.module, 0) + 1
        (batch, _, length, keys), start = weights.shape, 0
        if is_self:
            start = max(keys - length, 0) if layer.recorded else 0  # of keys in a cache
            queries = visible.any(2).any(1)[:, start : start + length]
            self._queries = [queries, *self._queries[:1]]
        else:
            like = (each for each in self._queries if each.shape == (batch, length))
            known = next(like, None)
            queries = torch.ones_like(visible[:, 0, :, 0]) if known is None else known
        kind, alpha = kind_of(layer.name, is_self=is_self), alpha_of(layer.module)
        weights = weights.detach()
        self._receive(
            Attention(layer.name, kind, layer.layer, weights, visible, queries, start, alpha)
        )


def alpha_of(module: nn.Module) -> float | Tensor | None:
    """The α of an attention module, a number or one value per head; None if it has none."""
    alpha = getattr(module, "alpha", None)
    return alpha.detach() if isinstance(alpha, Tensor) else alpha


@contextmanager
def _replaced_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Replace the method of a single module, and restore what was there."""
    before = module.__dict__.get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if before is None:
            del module.forward
        else:
            module.forward = before
