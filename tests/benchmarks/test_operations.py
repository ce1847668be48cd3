"""An operation of the benchmarks computes what its peers compute, and what is named exists."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("entmax")

from benchmarks.angle_loop import AngleLoop, loop_over_angles
from benchmarks.inputs import make_inputs, square_basis
from benchmarks.peers import OPERATIONS, largest_blocks
from benchmarks.problems import Case
from benchmarks.styles import STYLES

ABSENT = ("adasplash.",)  # peers that are not installed for the tests
ELSEWHERE = ("continuous", "search", "decoder")  # families that other tests compare
PEERS = [
    pytest.param(ours, OPERATIONS[ours.family, peer], id=f"{ours.name} as {peer}")
    for ours in OPERATIONS.values()
    for peer in ours.peers
    if not peer.startswith(ABSENT) and ours.family not in ELSEWHERE
]


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize(("ours", "theirs"), PEERS)
def test_an_operation_computes_what_its_peer_computes(ours, theirs, backward):
    case = Case(ours.family, rows=6, columns=40, dtype=torch.float64, backward=backward, width=3)
    inputs = make_inputs(case)
    mine, other = (o.build(inputs, backward=backward)() for o in (ours, theirs))
    # The α gradient of the peer is exact only where its bisection has converged.
    torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("maps", "entmax.sparsemax"),
        ("maps", "entmax.entmax15"),
        ("losses", "entmax.entmax15_loss"),
    ],
)
def test_partial_sort_computes_what_the_full_sort_computes(family, name):
    inputs = make_inputs(Case(family, 4, 300, dtype=torch.float64))
    whole, partial = (
        OPERATIONS[family, n].build(inputs, backward=False)() for n in (name, f"{name}(k=100)")
    )
    torch.testing.assert_close(whole, partial)


@pytest.mark.parametrize("loop", [AngleLoop.apply, loop_over_angles], ids=["paper", "autograd"])
def test_a_loop_over_many_angles_computes_the_expectations_and_gradients(loop):
    inputs = make_inputs(Case("continuous", 3, 16, dtype=torch.float64, backward=True))
    ours = OPERATIONS["continuous", "fenchel.continuous.entmax(2)"]
    basis = square_basis(16, torch.float64, "cpu")
    looped = replace(
        ours, call=lambda x: loop(x.location, x.covariance, basis.centers, basis.scales, 400)
    )
    for backward in (False, True):
        mine, other = (one.build(inputs, backward=backward)() for one in (ours, looped))
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)


def test_the_layers_of_all_regions_look_at_the_same_function():
    inputs = make_inputs(
        Case("continuous-regions", 2, 196, dtype=torch.float64, backward=True, width=8)
    )
    name = "fenchel.nn.ContinuousAttention2d"
    fitting, fitted = (
        OPERATIONS["continuous-regions", n].build(inputs, backward=True)()
        for n in (name, f"{name}, values fitted before")
    )
    torch.testing.assert_close(fitting, fitted)


def test_names_of_baselines_and_peers_exist_in_the_same_family():
    for one in OPERATIONS.values():
        peers = [name for name in one.peers if not name.startswith(ABSENT)]
        assert {(one.family, other) for other in [one.baseline, *peers]} <= set(OPERATIONS)


def test_what_is_drawn_exists():
    known = {name for _, name in OPERATIONS}
    assert {name for name in STYLES if not name.startswith(ABSENT)} <= known


def test_of_the_blocks_of_a_kernel_the_two_longest_that_a_row_fills_are_tried():
    configs = [
        SimpleNamespace(kwargs={"BLOCK_N": size}) for size in (32, 64, 128, 256) for _ in range(2)
    ]

    def sizes(columns: int) -> list[int]:
        return [config.kwargs["BLOCK_N"] for config in largest_blocks(configs, columns)]

    assert sizes(10_000) == [128, 128, 256, 256]
    assert sizes(100) == [32, 32, 64, 64]
    assert sizes(4) == [32, 32]


def test_learned_alpha_gets_its_gradient_and_others_do_not():
    case = Case("maps", 3, 8, backward=True)
    inputs = make_inputs(case)
    learned = OPERATIONS["maps", "fenchel.entmax(α a row)"].build(inputs, backward=True)()
    fixed = OPERATIONS["maps", "fenchel.sparsemax"].build(inputs, backward=True)()
    assert [gradient.shape for gradient in learned] == [(3, 8), (3, 1)]
    assert [gradient.shape for gradient in fixed] == [(3, 8)]
