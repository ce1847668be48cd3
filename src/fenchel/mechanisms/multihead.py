"""Multi-head attention: PyTorch's layer with α-entmax, and its checkpoints."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fenchel.checks import check_tensor
from fenchel.errors import rule
from fenchel.mechanisms.exponent import Alpha, Exponent, brief
from fenchel.mechanisms.functional import attention, dense_weights, weighted_average
from fenchel.mechanisms.masks import causal, readable
from fenchel.mechanisms.operands import check_dropout, check_operands


class MultiheadAttention(nn.MultiheadAttention):
    r"""`torch.nn.MultiheadAttention` whose heads attend with α-entmax; α = 1 is that layer exactly.

    Each head solves argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p) over its scaled scores, as `fenchel.attention`
    does. Arguments, parameters, initialisation and mask conventions are PyTorch's, with these
    differences: a query that may see nothing returns the output bias instead of NaN; boolean and
    real masks may be mixed; `is_causal=True` is enough without `attn_mask`, and aligns bottom right;
    `dropout` is below 1. A checkpoint of PyTorch's layer loads as it is; a learned α then keeps its
    value.

    In the boolean masks of this layer True means *not* attended, as in `torch.nn.MultiheadAttention`.
    It is the opposite in `fenchel.attention` and `F.scaled_dot_product_attention`: pass `~mask` of
    theirs here. Given together with `is_causal=True`, a causal mask of their convention is an error.

    Args:
        alpha: a number, a sequence with one number a head, or `"learned"`: α = 1 + sigmoid(a), one
            a head. `.alpha` gives the current values.

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
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise rule(
                "heads share the embedding evenly",
                expected="embed_dim > 0 divisible by num_heads > 0",
                got=f"{embed_dim} and {num_heads}",
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
        self.exponent = Exponent(alpha, num_heads, device=device, dtype=dtype)

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
        batch_dim = 0 if self.batch_first or not is_batched else 1
        if not is_batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = (
                key_padding_mask.unsqueeze(0) if key_padding_mask is not None else None
            )
        query, key, value = (x.transpose(0, batch_dim) for x in (query, key, value))
        self._check_matching(query, key, value)
        mask = self._mask(query, key, key_padding_mask, attn_mask, is_causal)
        q, k, v = check_operands(*self._heads(query, key, value), enable_gqa=False)
        if need_weights:
            weights = dense_weights(q, k, alpha=self.alpha, mask=mask)
            weights = F.dropout(weights, self.dropout, self.training)
            heads = weighted_average(weights, v)
        else:
            dropout = self.dropout if self.training else 0.0
            weights = None
            heads = attention(q, k, v, alpha=self.alpha, mask=mask, dropout_p=dropout)
        output = self.out_proj(heads.transpose(1, 2).flatten(2)).transpose(0, batch_dim)
        if weights is None:
            return (output if is_batched else output.squeeze(0)), None
        weights = (weights.mean(1) if average_attn_weights else weights).to(q.dtype)
        return (output, weights) if is_batched else (output.squeeze(0), weights.squeeze(0))

    def extra_repr(self) -> str:
        alpha = brief(self.exponent.setting)
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, alpha={alpha}"

    def _heads(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Projections (N, heads, length, size), with the learned and the zero key at the end."""
        packed = self.in_proj_weight
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        matrices = separate if packed is None else packed.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = map(F.linear, (query, key, value), matrices, biases)
        if self.bias_k is not None and self.bias_v is not None:
            k = torch.cat([k, self.bias_k.expand(k.shape[0], 1, -1)], dim=1)
            v = torch.cat([v, self.bias_v.expand(v.shape[0], 1, -1)], dim=1)
        if self.add_zero_attn:
            k, v = (F.pad(x, (0, 0, 0, 1)) for x in (k, v))
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for x in (q, k, v))
        return q, k, v

    def _mask(
        self,
        query: Tensor,
        key: Tensor,
        key_padding_mask: Tensor | None,
        attn_mask: Tensor | None,
        is_causal: bool,
    ) -> Tensor | None:
        """One mask in the convention of `fenchel.attention`, from those in PyTorch's."""
        (batch, queries), keys = query.shape[:2], key.shape[1]
        forbidden = []
        if attn_mask is not None:
            _check_mask("attn_mask", attn_mask)
            per_head = (batch * self.num_heads, queries, keys)
            if tuple(attn_mask.shape) not in ((queries, keys), per_head):
                expected, got = f"shape {per_head[1:]} or {per_head}", tuple(attn_mask.shape)
                raise rule("attn_mask has one value a query and key", expected=expected, got=got)
            if is_causal:
                _check_convention(attn_mask)
            full = attn_mask.ndim == 3
            forbidden.append(attn_mask.unflatten(0, (batch, self.num_heads)) if full else attn_mask)
        elif is_causal:
            forbidden.append(~causal(queries, keys, device=query.device))
        if key_padding_mask is not None:
            _check_mask("key_padding_mask", key_padding_mask)
            if tuple(key_padding_mask.shape) != (batch, keys):
                expected, got = f"shape {(batch, keys)}", tuple(key_padding_mask.shape)
                raise rule("key_padding_mask has one value a key", expected=expected, got=got)
            forbidden.append(key_padding_mask[:, None, None])
        extra = (self.bias_k is not None) + self.add_zero_attn
        return _merge([F.pad(mask, (0, extra)) for mask in forbidden])

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether the inputs have a batch dimension."""
        sizes = {"query": self.embed_dim, "key": self.kdim, "value": self.vdim}
        for (name, size), tensor in zip(sizes.items(), (query, key, value), strict=True):
            check_tensor(tensor, name)
            if tensor.ndim not in (2, 3) or tensor.ndim != query.ndim:
                expected = "ndim 2 (one sequence) or 3 (a batch), the same for all"
                raise rule(f"{name} must hold vectors", expected=expected, got=tuple(tensor.shape))
            if tensor.shape[-1] != size:
                raise rule(f"{name} has a fixed size", expected=size, got=tensor.shape[-1])
        return query.ndim == 3

    def _check_matching(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        batches = query.shape[0], key.shape[0], value.shape[0]
        if not batches[0] == batches[1] == batches[2] or key.shape[1] != value.shape[1]:
            shapes = ", ".join(str(tuple(x.shape[:2])) for x in (query, key, value))
            expected = "one batch size, and one length of key and value"
            raise rule("query, key and value must match", expected=expected, got=shapes)

    def _reset_parameters(self) -> None:
        self._qkv_same_embed_dim = self.in_proj_weight is not None
        super()._reset_parameters()
        # nn.TransformerEncoderLayer replaces a layer with this flag by a fused softmax.
        self._qkv_same_embed_dim = False

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kw: Any) -> None:
        if self.exponent.is_learned:
            logit = self.exponent.logit.detach()
            logit = torch.zeros_like(logit, device="cpu") if logit.is_meta else logit
            state_dict.setdefault(f"{prefix}exponent.logit", logit)
        super()._load_from_state_dict(state_dict, prefix, *args, **kw)


def _check_mask(name: str, mask: Tensor) -> None:
    check_tensor(mask, name)
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        expected = "a boolean tensor (True: not attended) or a real one (added)"
        raise rule(f"{name} forbids or biases", expected=expected, got=mask.dtype)


def _check_convention(attn_mask: Tensor) -> None:
    """Refuse the causal mask that is True where a query may attend. Values are read on the CPU only."""
    if attn_mask.dtype != torch.bool or not attn_mask.numel() or not readable(attn_mask):
        return
    if bool((attn_mask == causal(*attn_mask.shape[-2:])).all()):
        raise rule(
            "attn_mask must be True where a query may not attend",
            expected="True above the diagonal, as in torch.nn.MultiheadAttention",
            got="the opposite (pass ~attn_mask)",
        )


def _merge(forbidden: list[Tensor]) -> Tensor | None:
    """Real masks add up; a boolean one becomes −inf where there are real ones."""
    visible, bias = None, None
    for mask in forbidden:
        if mask.dtype == torch.bool:
            visible = ~mask if visible is None else visible & ~mask
        else:
            bias = mask if bias is None else bias + mask
    if visible is None or bias is None:
        return visible if bias is None else bias
    return torch.where(visible, bias, float("-inf"))
