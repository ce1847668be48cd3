"""Multi-head attention: PyTorch's layer with α-entmax, and its checkpoints."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fenchel.checks import check_tensor
from fenchel.errors import FenchelError
from fenchel.mechanisms.exponent import Alpha, Exponent, Start, brief, check_start
from fenchel.mechanisms.functional import attention, dense_attention, prepare
from fenchel.mechanisms.masks import causal, readable
from fenchel.mechanisms.operands import check_dropout


class MultiheadAttention(nn.MultiheadAttention):
    r"""`torch.nn.MultiheadAttention` whose heads attend with α-entmax; α = 1 is that layer exactly.

    Each head solves argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p) over its scaled scores, as `fenchel.attention`
    does. Arguments, parameters, initialisation and mask conventions are PyTorch's, with these
    differences: a query whose keys are all masked returns the output bias instead of NaN; boolean and
    real masks may be mixed; `is_causal=True` is enough without `attn_mask`, and aligns bottom right;
    `dropout` must be below 1. Checkpoints of PyTorch's layer can be loaded; a learned α then keeps
    its value.

    In the boolean masks of this layer True means *not* attended, as in `torch.nn.MultiheadAttention`.
    `fenchel.attention` and `F.scaled_dot_product_attention` use the opposite convention: pass `~mask`
    here. A causal mask of that convention together with `is_causal=True` raises an error.

    For decoding with a key–value cache, `project_keys` projects keys and values once, and `attend`
    attends to projected ones.

    Args:
        alpha: a number, a sequence with one number per head, or `"learned"`: α = 1 + sigmoid(a), one
            per head. `.alpha` gives the current values, in single precision at least, whatever the
            dtype of the layer.
        alpha_start: the initial value of a learned α: a number between 1 and 2, or "random", which
            draws a from a standard normal distribution.
        tie_alpha: whether all heads share one learned α.

    Reference: Correia, Niculae & Martins (2019), *Adaptively Sparse Transformers*.

    >>> import torch
    >>> layer = MultiheadAttention(8, 2, batch_first=True, alpha="learned")
    >>> x = torch.randn(3, 5, 8)
    >>> output, weights = layer(x, x, x)
    >>> output.shape, weights.shape, layer.alpha
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]), tensor([1.5000, 1.5000], grad_fn=<AddBackward0>))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        alpha: Alpha = 1.5,
        alpha_start: Start = 1.5,
        tie_alpha: bool = False,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise FenchelError(
                "embed_dim must be divisible by num_heads, and both must be positive,"
                f" got {embed_dim} and {num_heads}"
            )
        check_dropout(dropout, "dropout")
        super().__init__(
            embed_dim,
            num_heads,
            dropout=dropout,
            bias=bias,
            add_bias_kv=add_bias_kv,
            add_zero_attn=add_zero_attn,
            kdim=kdim,
            vdim=vdim,
            batch_first=batch_first,
            device=device,
            dtype=dtype,
        )
        check_start(alpha_start, "alpha_start")
        self.exponent = Exponent(
            alpha, num_heads, start=alpha_start, tied=tie_alpha, device=device, dtype=dtype
        )

    @property
    def alpha(self) -> float | Tensor:
        return self.exponent()

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output, in the layout of the input, and the weights (N, L, S) or (N, heads, L, S)."""
        is_batched = self._check_inputs(query, key, value)
        is_self, is_shared = query is key is value, key is value
        batch_dim = 0 if self.batch_first or not is_batched else 1
        query = self._batch_first(query)
        key = query if is_self else self._batch_first(key)
        value = key if is_shared else self._batch_first(value)
        if not is_batched and key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        self._check_matching(query, key, value)
        mask = self._mask(query, key, key_padding_mask, attn_mask, is_causal)
        q, k, v = self.project(query, key, value)
        output, weights = self.attend(
            q, k, v, mask, need_weights=need_weights, is_causal=is_causal and attn_mask is None
        )
        output = output.transpose(0, batch_dim)
        if weights is None:
            return (output if is_batched else output.squeeze(0)), None
        weights = (weights.mean(1) if average_attn_weights else weights).to(q.dtype)
        return (output, weights) if is_batched else (output.squeeze(0), weights.squeeze(0))

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the heads, (N, heads, length, head size).

        The inputs are (N, length, size). If all are the same tensor, one matrix product is computed.
        """
        if self.in_proj_weight is not None and query is key is value:
            packed = F.linear(query, self.in_proj_weight, self.in_proj_bias)
            q, k, v = map(self._split, packed.chunk(3, -1))
            return q, k, v
        return self.project_queries(query), *self.project_keys(key, value)

    def project_queries(self, query: Tensor) -> Tensor:
        """Queries of the heads, (N, heads, L, head size), from (N, L, embed_dim)."""
        packed, size = self.in_proj_weight, self.embed_dim
        weight = self.q_proj_weight if packed is None else packed[:size]
        bias = None if self.in_proj_bias is None else self.in_proj_bias[:size]
        return self._split(F.linear(query, weight, bias))

    def project_keys(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the heads, (N, heads, S, head size), from (N, S, kdim) and (N, S, vdim).

        They can be cached and passed to `attend` for any number of queries. Keys and values of later
        positions can be concatenated along S.
        """
        packed, size = self.in_proj_weight, self.embed_dim
        bias = None if self.in_proj_bias is None else self.in_proj_bias[size:]
        if packed is not None and key is value:
            k, v = F.linear(key, packed[size:], bias).chunk(2, -1)
            return self._split(k), self._split(v)
        k_weight, v_weight = (
            (self.k_proj_weight, self.v_proj_weight) if packed is None else packed[size:].chunk(2)
        )
        k_bias, v_bias = (None, None) if bias is None else bias.chunk(2)
        k, v = F.linear(key, k_weight, k_bias), F.linear(value, v_weight, v_bias)
        return self._split(k), self._split(v)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        *,
        need_weights: bool = False,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output (N, L, embed_dim) and the weights (N, heads, L, S) of projected inputs.

        Args:
            q, k, v: of the heads, as `project_queries` and `project_keys` return them.
            mask: as in `fenchel.attention`: True marks what may be attended, a real one is added to
                the scores; broadcasts to (N, heads, L, S).
            need_weights: whether to return the weights; None otherwise, which is faster.
            is_causal: as in `fenchel.attention`: a query sees the keys up to its own.

        >>> import torch
        >>> layer, x = MultiheadAttention(8, 2, batch_first=True), torch.randn(3, 5, 8)
        >>> keys, values = layer.project_keys(x, x)
        >>> output, _ = layer.attend(layer.project_queries(x[:, 4:]), keys, values)
        >>> output.allclose(layer(x, x, x)[0][:, 4:], atol=1e-6)
        True
        """
        has_softmax = isinstance(self.alpha, float) and self.alpha == 1
        if is_causal and (self.bias_k is not None or self.add_zero_attn or has_softmax):
            mask, is_causal = _with_causal(mask, q, k), False
        k, v, mask = self._with_extra_keys(k, v, mask)
        alpha, dropout = self.alpha, self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            (q, k, v), options = prepare(q, k, v, alpha=alpha, mask=mask, is_causal=is_causal)
            heads, weights = dense_attention(q, k, v, options, dropout)
        elif isinstance(alpha, float) and alpha == 1:
            mask = mask if mask is None or mask.dtype == torch.bool else mask.to(q.dtype)
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        else:
            heads = attention(
                q, k, v, alpha=alpha, mask=mask, is_causal=is_causal, dropout_p=dropout
            )
        return self.out_proj(heads.transpose(1, 2).flatten(2)), weights

    def extra_repr(self) -> str:
        alpha = brief(self.exponent.setting)
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, alpha={alpha}"

    def _batch_first(self, x: Tensor) -> Tensor:
        if x.ndim == 2:
            return x.unsqueeze(0)
        return x if self.batch_first else x.transpose(0, 1)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _with_extra_keys(
        self, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Append the learned key and the key that is zero, which every query may attend."""
        extra = (self.bias_k is not None) + self.add_zero_attn
        if not extra:
            return k, v, mask
        if mask is not None:
            mask = mask.expand(*mask.shape[:-1], k.shape[2])
            mask = F.pad(mask, (0, extra), value=mask.dtype == torch.bool)
        if self.bias_k is not None and self.bias_v is not None:
            k, v = (
                torch.cat([x, self._split(bias.to(x.dtype)).expand(x.shape[0], -1, 1, -1)], 2)
                for x, bias in ((k, self.bias_k), (v, self.bias_v))
            )
        if self.add_zero_attn:
            k, v = (F.pad(x, (0, 0, 0, 1)) for x in (k, v))
        return k, v, mask

    def _mask(
        self,
        query: Tensor,
        key: Tensor,
        key_padding_mask: Tensor | None,
        attn_mask: Tensor | None,
        is_causal: bool,
    ) -> Tensor | None:
        """PyTorch's masks as one mask in the convention of `fenchel.attention`."""
        (batch, queries), keys = query.shape[:2], key.shape[1]
        forbidden = []
        if attn_mask is not None:
            _check_mask("attn_mask", attn_mask)
            per_head = (batch * self.num_heads, queries, keys)
            if tuple(attn_mask.shape) not in ((queries, keys), per_head):
                raise FenchelError(
                    f"attn_mask must have shape {per_head[1:]} or {per_head},"
                    f" got {tuple(attn_mask.shape)}"
                )
            if is_causal:
                _check_convention(attn_mask)
            full = attn_mask.ndim == 3
            forbidden.append(attn_mask.unflatten(0, (batch, self.num_heads)) if full else attn_mask)
        if key_padding_mask is not None:
            _check_mask("key_padding_mask", key_padding_mask)
            if tuple(key_padding_mask.shape) != (batch, keys):
                raise FenchelError(
                    f"key_padding_mask must have shape {(batch, keys)},"
                    f" got {tuple(key_padding_mask.shape)}"
                )
            forbidden.append(key_padding_mask[:, None, None])
        return _merge(forbidden)

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Check the inputs; returns whether they have a batch dimension."""
        sizes = {"query": self.embed_dim, "key": self.kdim, "value": self.vdim}
        for (name, size), tensor in zip(sizes.items(), (query, key, value), strict=True):
            check_tensor(tensor, name)
            if query.ndim not in (2, 3):
                shape = tuple(query.shape)
                raise FenchelError(f"query must have 2 dimensions, or 3 for a batch, got {shape}")
            if tensor.ndim != query.ndim:
                raise FenchelError(
                    f"{name} must have as many dimensions as query ({query.ndim}),"
                    f" got {tuple(tensor.shape)}"
                )
            if tensor.shape[-1] != size:
                raise FenchelError(f"{name} must have size {size}, got {tensor.shape[-1]}")
        return query.ndim == 3

    def _check_matching(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        batches = query.shape[0], key.shape[0], value.shape[0]
        if not batches[0] == batches[1] == batches[2] or key.shape[1] != value.shape[1]:
            got = ", ".join(str(tuple(x.shape[:2])) for x in (query, key, value))
            raise FenchelError(
                "query, key and value must have the same batch size, and key and value the same"
                f" length, got (batch, length) = {got}"
            )

    def _reset_parameters(self) -> None:
        self._qkv_same_embed_dim = self.in_proj_weight is not None
        super()._reset_parameters()
        # nn.TransformerEncoderLayer replaces a layer with this flag by a fused softmax.
        self._qkv_same_embed_dim = False

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kw: Any) -> None:
        if self.exponent.is_learned:
            logit = self.exponent.logit.detach()
            logit = self.exponent.starting_logit() if logit.is_meta else logit
            state_dict.setdefault(f"{prefix}exponent.logit", logit)
        super()._load_from_state_dict(state_dict, prefix, *args, **kw)


def _check_mask(name: str, mask: Tensor) -> None:
    check_tensor(mask, name)
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise FenchelError(
            f"{name} must be a boolean tensor (True: not attended) or a floating-point tensor"
            f" (added to the scores), got {mask.dtype}"
        )


def _with_causal(mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor:
    """The mask combined with a causal mask."""
    visible = causal(q.shape[2], k.shape[2], device=q.device)
    if mask is None:
        return visible
    return mask & visible if mask.dtype == torch.bool else torch.where(visible, mask, -torch.inf)


def _check_convention(attn_mask: Tensor) -> None:
    """Raise for a causal mask of the opposite convention. Values are read on the CPU only."""
    if attn_mask.dtype != torch.bool or not attn_mask.numel() or not readable(attn_mask):
        return
    if bool((attn_mask == causal(*attn_mask.shape[-2:])).all()):
        raise FenchelError(
            "a causal attn_mask must be True above the diagonal, as in torch.nn.MultiheadAttention,"
            " got the opposite (pass ~attn_mask)"
        )


def _merge(forbidden: list[Tensor]) -> Tensor | None:
    """Combine masks: real masks are added, and boolean ones set their sum to −inf."""
    visible, bias = None, None
    for mask in forbidden:
        if mask.dtype == torch.bool:
            visible = ~mask if visible is None else visible & ~mask
        else:
            bias = mask if bias is None else bias + mask
    if visible is None or bias is None:
        return visible if bias is None else bias
    return torch.where(visible, bias, float("-inf"))
