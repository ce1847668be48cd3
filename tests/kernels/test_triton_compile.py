"""Every kernel compiles ahead of time for every GPU that is supported, on a machine without one.

The public functions are called on CPU tensors with the launcher replaced by a recorder; what they
would launch is then compiled: everything for one GPU, and for the others each kernel once, with one
alpha a row where it knows that, since such a kernel holds the code of all the others. It happens in a
process of its own, since in this one Triton may interpret its kernels.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

CAPABILITIES = (80, 90, 100)
THOROUGH = 90
EACH_ROW = torch.tensor([[1.2], [2.5]], dtype=torch.float64)
USUAL = 1.5  # for this, 1 and one alpha a row every kind of target is compiled
NEAR_SOFTMAX, BELOW_SOFTMAX = 1.02, 0.8
ALPHAS = (2.0, USUAL, 1.0, 1.3, 1.8, 3.0, EACH_ROW)
NARROW, SHORT, MEDIUM, LONG = 21, 96, 1000, 40000  # NARROW: no more than one entry a thread
PROBLEMS = (  # columns, dtype, whether there is a mask, alphas
    (SHORT, torch.bfloat16, False, (1.3,)),
    (SHORT, torch.float32, False, ALPHAS),
    (LONG, torch.float32, False, ALPHAS),
    (SHORT, torch.float32, False, (NEAR_SOFTMAX, BELOW_SOFTMAX)),
    (LONG, torch.float32, False, (1.1, BELOW_SOFTMAX)),
    (LONG, torch.bfloat16, False, (NEAR_SOFTMAX, BELOW_SOFTMAX)),
    (SHORT, torch.float32, True, (USUAL, EACH_ROW)),
    (MEDIUM, torch.float32, True, (EACH_ROW,)),
    (LONG, torch.float32, True, (1.0, EACH_ROW)),
)
STRUCTURED_PROBLEMS = (  # columns, dtype, whether there is a mask, strength
    (SHORT, torch.float32, False, 0.1),
    (LONG, torch.bfloat16, True, EACH_ROW),
)
THRESHOLD_PROBLEMS = (  # columns, dtype, whether there is a mask, alpha or k
    (NARROW, torch.bfloat16, False, 2.0),
    (SHORT, torch.float32, False, USUAL),
    (MEDIUM, torch.float32, True, 2.0),
    (LONG, torch.float32, False, 2.0),
    (LONG, torch.float32, True, EACH_ROW),
)
KERNELS = {
    "entmax_tile", "entmax_largest_scores", "entmax_alpha_per_row", "entmax_packed_half",
    "entmax_streamed", "entmax_near_softmax", "entmax_sorted_rows", "count_kinds",
    "sort_rows_by_kind", "entmax_backward_tile", "entmax_backward_blocks", "group_maxima",
    "solve_groups", "write_groups", "loss_tile", "loss_groups", "probability_loss_rows",
    "loss_gradient_tile", "alpha_gradient_rows", "label_smoothing_rows", "loss_gradient_groups",
    "loss_gradient_listed_groups", "loss_streamed", "loss_near_softmax", "softmax_parts",
    "write_softmax", "softmax_loss_rows", "list_entries", "number_full_rows", "add_full_rows",
    "add_all_rows", "sum_listed_weights", "multiply_full_rows", "sum_listed_hidden",
    "scale_blocks", "list_candidates", "prox_lanes", "prox_by_knots", "write_fused", "sort_rows",
    "find_oscar_support", "pool_lanes", "write_clusters", "group_backward_rows", "pnormmax_rows",
    "pnormmax_backward_rows", "normmax_rows", "normmax_backward_rows", "normmax_tile",
    "solve_normmax_groups", "budget_tile", "solve_budget_groups", "write_clipped_scores",
    "threshold_backward_tile", "threshold_backward_blocks",
}  # fmt: skip

requires_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed"
)


@requires_triton
@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_kernel_compiles(capability: int) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    result = subprocess.run(
        [sys.executable, __file__, str(capability)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert set(result.stdout.split()) == KERNELS


def _calls(columns: int, dtype: torch.dtype, masked: bool, alpha: Any) -> None:
    from fenchel.kernels.triton import entmax, entmax_loss

    scores = torch.empty(2, columns, dtype=dtype)
    if masked:
        entmax.entmax(scores, alpha, torch.ones(1, columns, dtype=torch.bool))
        return
    entmax.entmax(scores, alpha)
    entmax.entmax_backward(scores, scores, alpha)
    index = torch.zeros(2, dtype=torch.int64)
    loss, normalizer = entmax_loss.entmax_loss(scores, index, alpha, -100, 0.0)
    entmax_loss.entmax_loss_backward(loss, scores, index, alpha, normalizer, -100, 0.0)
    if not isinstance(alpha, torch.Tensor) and alpha not in (1.0, USUAL):
        return
    entmax_loss.entmax_loss_in_place(loss, scores, index, alpha, -100, 0.0, False)
    if columns == SHORT:
        entmax_loss.entmax_loss(scores, scores, alpha, -100, 0.0)
        entmax_loss.entmax_loss_backward(loss, scores, scores, alpha, normalizer, -100, 0.0)
        entmax_loss.entmax_loss(scores, index, alpha, -100, 0.1)
    if isinstance(alpha, torch.Tensor):
        entmax.entmax_backward_alpha(scores, scores, alpha)
        entmax_loss.entmax_loss_alpha(scores, index, alpha, normalizer, -100, 0.0)


def _halves_calls() -> None:
    from fenchel.kernels.triton import entmax

    for dtype, columns, alpha in ((torch.bfloat16, 8192, 2.0), (torch.float16, 8000, USUAL)):
        entmax.entmax(torch.empty(1024, columns, dtype=dtype), alpha)


def _streamed_calls() -> None:
    from fenchel.kernels.triton import entmax
    from fenchel.kernels.triton.launch import tile_shapes

    tile_shapes.STREAMED_MIN_ROWS = 2  # so that two rows are enough
    for dtype, columns, alpha in ((torch.float32, 131072, 2.0), (torch.bfloat16, 128256, USUAL)):
        entmax.entmax(torch.empty(2, columns, dtype=dtype), alpha)


def _streamed_loss_calls() -> None:
    from fenchel.kernels.triton import entmax_loss
    from fenchel.kernels.triton.launch import tile_shapes

    tile_shapes.STREAMED_LOSS_MIN_ROWS = 2
    index, grad = torch.zeros(2, dtype=torch.int64), torch.ones(()).expand(2)
    for dtype, columns, alpha in ((torch.float16, 65537, 2.0), (torch.bfloat16, 128256, USUAL)):
        scores = torch.empty(2, columns, dtype=dtype)
        entmax_loss.entmax_loss_in_place(grad, scores, index, alpha, -100, 0.0, False)


def _ordered_calls() -> None:
    from fenchel.kernels.triton import entmax
    from fenchel.kernels.triton.entmax import alpha_per_row

    alpha_per_row.MIN_SORTED_TILES = 1  # so that two rows are enough
    entmax.entmax(torch.empty(2, SHORT), EACH_ROW)


def _layer_calls() -> None:
    """The loss of long rows with what its gradient keeps, and the gradients of a layer."""
    from fenchel.kernels.triton import entmax_loss, linear_entmax_loss

    scores, hidden = (torch.empty(2, size, dtype=torch.bfloat16) for size in (LONG, 64))
    index = torch.zeros(2, dtype=torch.int64)
    numbers = entmax_loss.listed_numbers(LONG, index, USUAL)
    listed = torch.empty(2, numbers, dtype=torch.int32)
    for alpha in (USUAL, 1.3, 2.5, EACH_ROW):
        found = listed, torch.empty(2, entmax_loss.support_numbers(alpha))
        loss, normalizer = entmax_loss.entmax_loss(scores, index, alpha, -100, 0.0, *found)
        rest = (normalizer, -100, 0.0, *found)
        entmax_loss.entmax_loss_backward(loss, scores, index, alpha, *rest)
        if isinstance(alpha, torch.Tensor):
            entmax_loss.entmax_loss_alpha(scores, index, alpha, *rest)
    weight = torch.empty(LONG, 64, dtype=torch.bfloat16)
    for by_weight in (weight, weight.float()):
        total = linear_entmax_loss.SparseWeightGradient(by_weight, hidden, index, 2)
        total.list_part(scores, total.empty_support_groups(2), 0, 0)
        total.add(scores, 0, torch.empty_like(hidden), weight)
        total.finish(2)
        linear_entmax_loss.scale(by_weight, torch.ones(()))


def _shared_calls() -> None:
    """Rows of which Triton would give some threads other slabs: masked ones, and far columns."""
    from fenchel.kernels.triton import entmax

    for alpha in (USUAL, 1.3):
        for columns in (128, 1024):
            mask = torch.ones(1, columns, dtype=torch.bool)
            entmax.entmax(torch.empty(64, columns), alpha, mask)
        entmax.entmax(torch.empty(50, 64), alpha, dim=0)
    entmax.entmax(torch.empty(50, 64), torch.full((64,), 1.3), dim=0)
    entmax.entmax(torch.empty(2, LONG), 1.02, torch.ones(1, LONG, dtype=torch.bool))


def _structured_calls(columns: int, dtype: torch.dtype, masked: bool, strength: Any) -> None:
    from fenchel.kernels.triton import fusedmax, oscarmax

    scores = torch.empty(2, columns, dtype=dtype)
    mask = torch.ones(1, columns, dtype=torch.bool) if masked else None
    for module, name in ((fusedmax, "fusedmax"), (oscarmax, "oscarmax")):
        p, groups = getattr(module, name)(scores, strength, mask)
        if isinstance(strength, torch.Tensor):
            getattr(module, f"{name}_backward_strength")(scores, p, groups)
        else:
            getattr(module, f"{name}_backward")(scores, p, groups)


def _pnormmax_calls(masked: bool, p: Any) -> None:
    from fenchel.kernels.triton import pnormmax

    scores = torch.empty(2, NARROW)
    pnormmax.pnormmax(scores, p, torch.ones(1, NARROW, dtype=torch.bool) if masked else None)
    pnormmax.pnormmax_backward(scores, scores, p)


def _threshold_calls(columns: int, dtype: torch.dtype, masked: bool, value: Any) -> None:
    from fenchel.kernels.triton import budget, normmax

    scores = torch.empty(2, columns, dtype=dtype)
    mask = torch.ones(1, columns, dtype=torch.bool) if masked else None
    for module, name, parameter in ((normmax, "normmax", "alpha"), (budget, "budget", "k")):
        getattr(module, name)(scores, value, mask)
        if isinstance(value, torch.Tensor):
            getattr(module, f"{name}_backward_{parameter}")(scores, scores, value)
        else:
            getattr(module, f"{name}_backward")(scores, scores, value)


def _describe(value: Any, path: tuple[int, ...], constants: dict, attributes: dict) -> Any:
    """The type of an argument as Triton's launcher would specialise it."""
    if value is None or (isinstance(value, int) and value == 1):
        constants[path] = value
        return "constexpr"
    if isinstance(value, tuple):
        return tuple(_describe(v, (*path, i), constants, attributes) for i, v in enumerate(value))
    if hasattr(value, "block_shape"):
        return f"tensordesc<{_describe(value.base, path, {}, {})[1:]}{value.block_shape}>"
    if isinstance(value, torch.Tensor):
        attributes[path] = [["tt.divisibility", 16]]
        short = {"float": "fp", "bfloat": "bf", "int": "i", "bool": "i1"}
        name = str(value.dtype).removeprefix("torch.")
        word = name.rstrip("0123456789")
        return f"*{short[word]}{name[len(word) :]}"
    if isinstance(value, int):
        if value % 16 == 0:
            attributes[path] = [["tt.divisibility", 16]]
        return "i32" if abs(value) < 2**31 else "i64"
    return "fp32"


def _compile(kernel: Any, args: tuple, options: dict, capability: int) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tests.kernels.ptx import adds_products_to_what_was_sent

    options = dict(options)
    launch = {name: options.pop(name) for name in ("num_warps", "enable_fp_fusion")}
    signature, constants, attributes = {}, {}, {}
    for position, name in enumerate(kernel.arg_names):
        if name in options:
            constants[(position,)] = options[name]
            signature[name] = "constexpr"
        else:
            signature[name] = _describe(args[position], (position,), constants, attributes)
    source = ASTSource(kernel, signature, constants, attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=launch)
    if adds_products_to_what_was_sent(compiled.asm["ptx"]):
        raise AssertionError(f"the threads of {kernel.__name__} do not agree on a sum: {options}")


def main(capability: int) -> None:
    from triton import knobs
    from triton.runtime.jit import JITFunction

    launches: dict[str, tuple] = {}

    def record(self, *args, grid, warmup, **options):
        kinds = tuple(a.dtype if isinstance(a, torch.Tensor) else type(a) for a in args)
        variant = (kinds, options) if capability == THOROUGH else ()
        launches[repr((self.__name__, *variant))] = (self, args, options)

    JITFunction.run = record
    knobs.runtime.launch_enter_hook = print  # where launches are watched, none is repeated
    for columns, dtype, masked, alphas in PROBLEMS:
        for alpha in alphas:
            _calls(columns, dtype, masked, alpha)
    for problem in STRUCTURED_PROBLEMS:
        _structured_calls(*problem)
    for problem in ((False, USUAL), (True, EACH_ROW)):
        _pnormmax_calls(*problem)
    for problem in THRESHOLD_PROBLEMS:
        _threshold_calls(*problem)
    _shared_calls()
    _layer_calls()
    _halves_calls()
    _streamed_calls()
    _streamed_loss_calls()
    _ordered_calls()
    for kernel, args, options in launches.values():
        _compile(kernel, args, options, capability)
        print(kernel.__name__, flush=True)


if __name__ == "__main__":
    root = Path(__file__).parents[2]
    sys.path[:0] = [str(root), str(root / "src")]
    main(int(sys.argv[1]))
