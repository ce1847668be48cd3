"""From the tensors of a call to the words of its kernels."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from fenchel.kernels.cpu.attention.problem import PANEL
from fenchel.kernels.cpu.attention.workspace import FIRST_KEYS, padded_length, workspace_numbers
from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.reference.attention import Options

LONGEST_LIST, SHORTEST_LIST = 2048, 128  # candidates of a query
# Queries are computed densely if their candidates are more than a part of the keys, or if those among the
# first keys are more than a percentage of these.
LIST_PART, LARGEST_SHARE = 8, 40
BLOCK = 64  # queries
COST = 64  # products of numbers that take the time of an entry of a row


@lru_cache(1024)
def _offsets(sizes: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """Where the data of every head begin."""
    total = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(sizes, strides, strict=True):
        total = total.unsqueeze(-1) + torch.arange(size) * stride
    return total.flatten()


@lru_cache(1024)
def _number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64, device="cpu")


class Call:
    """The heads of a call, and the words that describe its operands to a kernel.

    Tensors that the words point to are kept as long as the call. With `lists_all`, the lists of
    candidates have room for all keys, and no query with α > 1 is computed densely.
    """

    def __init__(
        self, q: Tensor, k: Tensor, v: Tensor, options: Options, *, lists_all: bool = False
    ) -> None:
        self.dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
        q, k, v = self._rows(q), self._rows(k), self._rows(v)
        self.batch = q.shape[:-3]
        if not self.batch == k.shape[:-3] == v.shape[:-3]:
            self.batch = torch.broadcast_shapes(self.batch, k.shape[:-3], v.shape[:-3])
        query_heads, key_heads = q.shape[-3], max(k.shape[-3], v.shape[-3])
        self.heads = max(query_heads, key_heads)
        self.shared = self.heads // key_heads  # heads of queries to one of keys
        self.count = torch.Size(self.batch).numel() * self.heads
        self.queries, self.depth = q.shape[-2:]
        self.keys, self.size = v.shape[-2:]
        enough = self.count * self.queries >= 4 * BLOCK * torch.get_num_threads() and not lists_all
        self.block = min(BLOCK if enough else PANEL, padded_length(max(self.queries - PANEL, 0)))
        self.blocks = -(-self.queries // self.block)
        self.units = self.count * self.blocks
        share = min(self.keys // LIST_PART, LONGEST_LIST - PANEL)
        least = min(self.keys, SHORTEST_LIST) - PANEL
        self.capacity = padded_length(self.keys if lists_all else max(share, least, 0))
        self.kept: list[Tensor] = [_number(options.scale)]
        self.words: list[Tensor | int] = [self.queries, self.keys, self.depth, self.size]
        self.words.append(self.kept[0])
        for tensor, heads in ((q, query_heads), (k, key_heads), (v, key_heads)):
            self._add_operand(tensor, heads)
        self._add_alpha(options.alpha)
        if options.lengths is None:
            self.words.append(0)
        else:
            self._add_lengths(options.lengths)
        self.words += [int(options.is_causal), options.window]
        if options.mask is None:
            self.words += [0] * 8
        else:
            self._add_mask(options.mask)
        self.words += [self.capacity, 100 if lists_all else self._largest_share()]
        self.words += [self.blocks, self.block]
        self.offsets: Tensor | int = 0

    def launch(self, kernel: Kernel, units: int, *words: Tensor | int) -> None:
        """Run a kernel on some units of work, each of which a thread claims alone."""
        cost = max(1, self.count * self.queries * self.keys * self.depth // (COST * max(units, 1)))
        work = torch.empty((), dtype=self.dtype).expand(units, cost)
        scratch = workspace_numbers(self.block, self.capacity, self.keys, self.depth, self.size)
        launch(kernel, work, 0.0, scratch, *self.words, self.offsets, *words, chunk=1)

    def _largest_share(self) -> int:
        """In percent. Candidates among the first keys alone must not fill the lists."""
        first = min(self.keys, FIRST_KEYS)
        return min(LARGEST_SHARE, 100 * self.capacity // max(first, 1))

    def shape(self, heads: int, *sizes: int) -> tuple[int, ...]:
        return (*self.batch, heads, *sizes)

    def _rows(self, tensor: Tensor) -> Tensor:
        tensor = tensor.detach().to(self.dtype)
        return tensor if tensor.stride(-1) == 1 or tensor.numel() == 0 else tensor.contiguous()

    def _add_operand(self, tensor: Tensor, heads: int) -> None:
        if tensor.shape[:-3] != self.batch:
            tensor = tensor.expand(*self.batch, *tensor.shape[-3:])
        batch = tensor.stride()[: len(self.batch)]
        stride = tensor.stride(-3) if tensor.shape[-3] > 1 else 0
        sizes = (*self.batch, heads, self.heads // heads)
        self.kept.append(tensor)
        self.words += [tensor, _offsets(sizes, (*batch, stride, 0)), tensor.stride(-2)]

    def _add_alpha(self, alpha: float | Tensor) -> None:
        if not isinstance(alpha, Tensor):
            self.kept.append(_number(alpha))
            self.words += [self.kept[-1], _offsets((self.count,), (0,)), 0]
            return
        alpha = alpha.detach().double().expand(*self.shape(self.heads, self.queries, 1))
        self.kept.append(alpha)
        self.words += [alpha, self._table(alpha), alpha.stride(-2)]

    def _table(self, tensor: Tensor) -> Tensor:
        """For a tensor of all heads."""
        return _offsets(tuple(tensor.shape[:-2]), tensor.stride()[:-2])

    def _add_lengths(self, lengths: Tensor) -> None:
        lengths = lengths.to(torch.int64).unsqueeze(-1).expand(*self.batch, self.heads)
        self.kept.append(lengths.contiguous())
        self.words.append(self.kept[-1])

    def _add_mask(self, mask: Tensor) -> None:
        """A boolean mask, or a bias: the words of the other one are zero."""
        if mask.dtype != torch.bool:
            mask = mask.detach().to(self.dtype)
        full = mask.expand(*self.shape(self.heads, self.queries, self.keys))
        self.kept.append(full)
        words = [full, self._table(full), full.stride(-2), full.stride(-1)]
        none: list[Tensor | int] = [0, 0, 0, 0]
        self.words += [*words, *none] if mask.dtype == torch.bool else [*none, *words]
