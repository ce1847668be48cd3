"""The operations that are compared, by family, with their baselines and peers.

To add one, append an `Operation`. Continuous attention is in `attention`, other packages are in `peers`,
and the shapes are in `problems`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

import fenchel
from benchmarks.inputs import Inputs
from benchmarks.problems import Case

EVERY_DEVICE = ("cpu", "cuda")
OTHER_ALPHAS = (1.3, 1.75, 3.0)
DENSE_ALPHAS = (0.5, 0.95)  # heavier tails than softmax; no other package has them
COPY = "copy"


@dataclass(frozen=True)
class Operation:
    """An operation that is measured.

    Attributes:
        name: Its name in tables.
        family: The family of cases that it is measured on.
        baseline: The operation whose time is the denominator of ratios.
        call: Computes the output.
        peers: Operations of other packages with the same values; some may not be installed.
        learns: The inputs whose gradients are computed; without any, only the forward pass is measured.
        devices: The kinds of devices that it runs on.
    """

    name: str
    family: str
    baseline: str
    call: Callable[[Inputs], Tensor]
    peers: tuple[str, ...] = ()
    learns: tuple[str, ...] = ("scores",)
    devices: tuple[str, ...] = EVERY_DEVICE

    @property
    def optional(self) -> bool:
        """Whether it is left out if it is slow or fails: another package, and not the baseline."""
        return not self.name.startswith("fenchel.") and self.name != self.baseline

    def fits(self, case: Case) -> bool:
        """Whether it is measured on a case; the cost of a call is not measured for other packages."""
        return (
            self.family == case.family
            and case.device in self.devices
            and bool(self.learns or not case.backward)
            and not (self.optional and case.clock == "host")
        )

    def repeats(self, rows: int) -> float:
        """The number of steps of the whole problem; above 1 if a step is a share of it."""
        return 1.0

    def build(self, inputs: Inputs, *, backward: bool) -> Callable[[], object]:
        """The step to be timed: the call alone, or the call and its gradients."""
        if not backward:
            return lambda: self.call(inputs)
        # Only the inputs in `learns` require a gradient.
        leaves = {name: getattr(inputs, name).detach().requires_grad_() for name in self.learns}
        learned = replace(inputs, **leaves)

        def step() -> object:
            output = self.call(learned)
            upstream = inputs.upstream if output.ndim else None
            return torch.autograd.grad(output, tuple(leaves.values()), upstream)

        return step


def a_map(
    name: str,
    call: Callable[[Inputs], Tensor],
    *peers: str,
    learns: tuple[str, ...] = ("scores",),
    devices: Sequence[str] = EVERY_DEVICE,
) -> Operation:
    return Operation(name, "maps", "torch.softmax", call, peers, learns, tuple(devices))


def a_loss(
    name: str, call: Callable[[Inputs], Tensor], *peers: str, learns: tuple[str, ...] = ("scores",)
) -> Operation:
    return Operation(name, "losses", "F.cross_entropy", call, peers, learns)


def _entmax_at(alpha: float) -> Operation:
    peers = f"entmax.entmax_bisect({alpha:g})", f"adasplash.triton_entmax({alpha:g})"
    peers = peers if alpha in OTHER_ALPHAS else ()
    return a_map(f"fenchel.entmax({alpha:g})", lambda x: fenchel.entmax(x.scores, alpha), *peers)


MAPS = [
    # The cost of moving the bytes.
    a_map(COPY, lambda x: x.scores.clone(), learns=(), devices=("cuda",)),
    a_map("torch.softmax", lambda x: torch.softmax(x.scores, -1)),
    a_map("fenchel.softmax", lambda x: fenchel.softmax(x.scores), "torch.softmax"),
    a_map(
        "fenchel.sparsemax",
        lambda x: fenchel.sparsemax(x.scores),
        "entmax.sparsemax",
        "adasplash.triton_entmax(2)",
    ),
    a_map(
        "fenchel.entmax(1.5)",
        lambda x: fenchel.entmax(x.scores),
        "entmax.entmax15",
        "entmax.entmax_bisect(1.5)",
        "adasplash.triton_entmax(1.5)",
    ),
    *map(_entmax_at, DENSE_ALPHAS + OTHER_ALPHAS),
    a_map(
        "fenchel.entmax(α a row)",
        lambda x: fenchel.entmax(x.scores, x.alpha),
        "entmax.entmax_bisect(α a row)",
        learns=("scores", "alpha"),
    ),
    a_map("fenchel.normmax", lambda x: fenchel.normmax(x.scores), "entmax.normmax_bisect"),
    a_map("fenchel.budget", lambda x: fenchel.budget(x.scores), "entmax.budget_bisect"),
]

LOSSES = [
    a_loss("F.cross_entropy", lambda x: functional.cross_entropy(x.scores, x.target)),
    a_loss(
        "fenchel.sparsemax_loss",
        lambda x: fenchel.sparsemax_loss(x.scores, x.target),
        "entmax.sparsemax_loss",
    ),
    a_loss(
        "fenchel.entmax_loss(1.5)",
        lambda x: fenchel.entmax_loss(x.scores, x.target),
        "entmax.entmax15_loss",
    ),
    a_loss(
        "fenchel.entmax_loss(1.3)",
        lambda x: fenchel.entmax_loss(x.scores, x.target, 1.3),
        "entmax.entmax_bisect_loss(1.3)",
    ),
    a_loss(
        "fenchel.entmax_loss(α a row)",
        lambda x: fenchel.entmax_loss(x.scores, x.target, x.alpha),
        learns=("scores", "alpha"),
    ),
]

UNFUSED = "F.linear, fenchel.entmax_loss(1.5)"


def a_layer(name: str, call: Callable[[Inputs], Tensor], *peers: str) -> Operation:
    return Operation(name, "layers", UNFUSED, call, peers, learns=("hidden", "weight"))


def _scores(x: Inputs) -> Tensor:
    return functional.linear(x.hidden, x.weight)


LAYERS = [
    a_layer(UNFUSED, lambda x: fenchel.entmax_loss(_scores(x), x.target)),
    a_layer(
        "fenchel.linear_entmax_loss(1.5)",
        lambda x: fenchel.linear_entmax_loss(x.hidden, x.weight, x.target),
        UNFUSED,
    ),
    a_layer("F.linear, F.cross_entropy", lambda x: functional.cross_entropy(_scores(x), x.target)),
]

SPARSEMAX = "fenchel.sparsemax"
VIA_CPU = "CPU and back"


def a_structured_map(name: str, call: Callable[[Tensor], Tensor]) -> list[Operation]:
    """The map, and the same on a GPU by the CPU kernel with copies, as if it had no CUDA kernel."""

    def copied(x: Inputs) -> Tensor:
        return call(x.scores.cpu()).to(x.scores.device)

    there = f"{VIA_CPU}, {name}"
    return [
        Operation(name, "structured", SPARSEMAX, lambda x: call(x.scores), (there,)),
        Operation(there, "structured", SPARSEMAX, copied, devices=("cuda",)),
    ]


STRUCTURED = [
    Operation(SPARSEMAX, "structured", SPARSEMAX, lambda x: fenchel.sparsemax(x.scores)),
    *a_structured_map("fenchel.fusedmax", fenchel.fusedmax),
    *a_structured_map("fenchel.oscarmax", fenchel.oscarmax),
]

OURS = [*MAPS, *LOSSES, *LAYERS, *STRUCTURED]
