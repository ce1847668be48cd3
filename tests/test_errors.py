"""Invalid arguments raise `FenchelError`; the message says what must hold and what was given."""

from __future__ import annotations

import math
import re

import pytest
import torch

import fenchel

X = torch.tensor([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]])
TARGET = torch.tensor([0, 2])
NAN, INF = math.nan, math.inf
STRUCTURED = [fenchel.pnormmax, fenchel.fusedmax, fenchel.oscarmax]
SIMPLEX_MAPS = [fenchel.softmax, fenchel.sparsemax, fenchel.entmax, fenchel.normmax, *STRUCTURED]
MAPS = [*SIMPLEX_MAPS, fenchel.budget]
PARAMETRIC = [fenchel.entmax, fenchel.normmax, fenchel.budget, *STRUCTURED]
OMEGAS = [
    fenchel.Shannon(),
    fenchel.Gini(),
    fenchel.Tsallis(1.3),
    fenchel.Norm(2.0),
    fenchel.PNorm(1.5),
    fenchel.Fused(0.1),
    fenchel.Oscar(0.1),
]
SCORE_TAKERS = [*MAPS, *(omega.map for omega in OMEGAS), *(omega.max for omega in OMEGAS)]
VALUES = [omega.value for omega in OMEGAS]
GRIDS = [fenchel.fusedmax2d, fenchel.fused_groups, fenchel.oscarmax_composition]
LOSSES = [fenchel.sparsemax_loss, fenchel.entmax_loss, *(omega.loss for omega in OMEGAS)]


def _name(value: object) -> str:
    owner = getattr(value, "__self__", None)
    return f"{owner!r}.{value.__name__}" if owner is not None else value.__name__


def broken(message: str):
    return pytest.raises(fenchel.FenchelError, match=f"^{re.escape(message)}")


def test_the_one_exception_is_a_value_error():
    assert issubclass(fenchel.FenchelError, ValueError)


@pytest.mark.parametrize("function", SCORE_TAKERS, ids=_name)
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (
            torch.tensor([1, 2, 3]),
            "scores must have a floating-point dtype,"
            " got torch.int64 (convert with scores.float())",
        ),
        (torch.tensor([True, False]), "scores must have a floating-point dtype, got torch."),
        (torch.tensor([1j, 2.0, 3.0]), "scores must have a floating-point dtype, got torch."),
        (torch.tensor(1.0), "scores must have at least one dimension, got a scalar"),
        ([1.0, 2.0, 3.0], "scores must be a torch.Tensor, got list"),
        (None, "scores must be a torch.Tensor, got NoneType"),
    ],
)
def test_scores_are_a_real_tensor(function, scores, message):
    with broken(message):
        function(scores)


@pytest.mark.parametrize("value", VALUES, ids=_name)
@pytest.mark.parametrize("p", [torch.tensor([[0, 1, 0]]), torch.tensor([True, False])])
def test_probabilities_are_a_real_tensor(value, p):
    with broken("p must have a floating-point dtype, got torch."):
        value(p)


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
def test_scores_of_a_loss_are_a_real_tensor(loss):
    with broken("scores must have a floating-point dtype, got torch.int64"):
        loss(torch.tensor([[1, 2, 3]]), torch.tensor([0]))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize("function", [*SCORE_TAKERS, *VALUES, *LOSSES, *GRIDS], ids=_name)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
def test_scores_are_dense(function, layout):
    name = "p" if function in (*VALUES, fenchel.fused_groups) else "scores"
    with broken(f"{name} must be dense, got layout {layout} (convert with {name}.to_dense())"):
        function(X.to_sparse(layout=layout), *([TARGET] if function in LOSSES else []))


def test_what_comes_with_the_scores_is_dense():
    with broken("mask must be dense, got layout torch.sparse_coo"):
        fenchel.sparsemax(X, mask=(X > 0).to_sparse())
    with broken("alpha must be dense, got layout torch.sparse_coo"):
        fenchel.entmax(X, torch.full((2, 1), 1.5).to_sparse())
    with broken("target must be dense, got layout torch.sparse_coo"):
        fenchel.sparsemax_loss(X, TARGET.to_sparse())
    with broken("weight must be dense, got layout torch.sparse_coo"):
        fenchel.sparsemax_loss(X, TARGET, weight=torch.ones(3).to_sparse())


@pytest.mark.parametrize("function", SCORE_TAKERS, ids=_name)
@pytest.mark.parametrize(("device", "other"), [("cpu", "meta"), ("meta", "cpu")])
def test_a_mask_is_where_the_scores_are(function, device, other):
    with broken(f"mask must be on the device of the scores ({device}), got {other}"):
        function(X.to(device), mask=(X > 0).to(other))


@pytest.mark.parametrize("function", PARAMETRIC, ids=_name)
def test_a_parameter_is_where_the_scores_are(function):
    for shape, device, other in (
        ((2, 1), "cpu", "meta"),
        ((2, 1), "meta", "cpu"),
        ((), "cpu", "meta"),
    ):
        with pytest.raises(fenchel.FenchelError) as raised:
            function(X.to(device), torch.full(shape, 1.5, device=other))
        expected = f"must be on the device of the scores ({device}), got {other}"
        assert str(raised.value).endswith(expected)


@pytest.mark.parametrize("function", PARAMETRIC, ids=_name)
def test_a_parameter_without_dimensions_goes_where_the_scores_are(function):
    assert function(X.to("meta"), torch.tensor(1.5)).device.type == "meta"


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
def test_targets_and_weights_are_where_the_scores_are(loss):
    for target in (TARGET, torch.softmax(X, -1)):
        with broken("target must be on the device of the scores (cpu), got meta"):
            loss(X, target.to("meta"))
    with broken("weight must be on the device of the target (cpu), got meta"):
        loss(X, TARGET, weight=torch.ones(3, device="meta"))


@pytest.mark.parametrize("dim", [2, -3, 100, None, 1.0, True, (0, 1)])
@pytest.mark.parametrize("function", [*SCORE_TAKERS, *VALUES], ids=_name)
def test_dim_exists(function, dim):
    with broken(f"dim must be an integer in [-2, 1], got {dim}"):
        function(X, dim=dim)


@pytest.mark.parametrize("function", SCORE_TAKERS, ids=_name)
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (
            torch.ones(4, dtype=torch.bool),
            "mask must have a shape that broadcasts to (2, 3), got (4,)",
        ),
        (
            torch.ones(2, dtype=torch.bool),
            "mask must have a shape that broadcasts to (2, 3), got (2,)",
        ),
        (
            torch.ones(1, 2, 3, dtype=torch.bool),
            "mask must have a shape that broadcasts to (2, 3), got",
        ),
        (
            torch.ones(2, 3),
            "mask must be a boolean tensor, got torch.float32",
        ),
        (
            [True, False, True],
            "mask must be a boolean tensor, got list",
        ),
    ],
)
def test_a_mask_is_boolean_and_broadcasts(function, mask, message):
    with broken(message):
        function(X, mask=mask)


@pytest.mark.parametrize(
    ("function", "limit"), [(fenchel.entmax, 0), (fenchel.normmax, 1)], ids=["entmax", "normmax"]
)
@pytest.mark.parametrize("value", [0, -1.0, -INF, NAN, INF])
def test_alpha_is_a_finite_number_above_its_limit(function, limit, value):
    bound = f"above {limit} and finite"
    with broken(f"alpha must be {bound}, got {value}"):
        function(X, value)
    with broken(f"alpha must be {bound}, got {float(value)}"):
        function(X, torch.tensor([[1.5], [float(value)]]))


@pytest.mark.parametrize("value", [0, -1.0, NAN, INF])
@pytest.mark.parametrize("loss", [fenchel.entmax_loss], ids=_name)
def test_alpha_of_a_loss_is_a_finite_number_above_zero(loss, value):
    bound = "above 0 and finite"
    with broken(f"alpha must be {bound}, got {value}"):
        loss(X, TARGET, value)
    with broken(f"alpha must be {bound}, got {float(value)}"):
        loss(X, TARGET, torch.tensor([[1.5], [float(value)]]))


def test_alpha_of_normmax_is_above_one():
    with broken("alpha must be above 1 and finite, got 1.0"):
        fenchel.normmax(X, 1.0)
    with broken("alpha must be above 1 and finite, got 1.0"):
        fenchel.normmax(X, torch.tensor(1.0))


@pytest.mark.parametrize("function", [fenchel.entmax, fenchel.normmax], ids=_name)
@pytest.mark.parametrize("value", ["1.5", None, True, 1.5j])
def test_alpha_is_a_number_or_a_tensor(function, value):
    with broken(f"alpha must be a number or a tensor, got {value!r}"):
        function(X, value)


@pytest.mark.parametrize("shape", [(2,), (3,), (2, 3), (2, 1, 1)])
@pytest.mark.parametrize("function", [fenchel.entmax, fenchel.normmax, fenchel.budget], ids=_name)
def test_a_parameter_broadcasts_with_size_one_along_dim(function, shape):
    with pytest.raises(fenchel.FenchelError) as raised:
        function(X, torch.full(shape, 1.5))
    assert "must have a shape that broadcasts to (2, 1)" in str(raised.value)
    assert str(raised.value).endswith(f"got {shape}")


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64])
def test_a_parameter_is_real(dtype):
    with broken(f"alpha must be real, got {dtype}"):
        fenchel.entmax(X, torch.ones((), dtype=dtype))


def test_k_lies_between_zero_and_the_number_of_entries():
    with broken("k must be at most the number of entries (3), got 4"):
        fenchel.budget(X, k=4)
    with broken("k must be at most the number of entries (2), got 3"):
        fenchel.budget(X, k=3, dim=0)
    bound = "at least 0 and finite"
    for value in (-1, NAN, INF):
        with broken(f"k must be {bound}, got {value}"):
            fenchel.budget(X, k=value)
        with broken(f"k must be {bound}, got {float(value)}"):
            fenchel.budget(X, k=torch.tensor(float(value)))
    with broken("k must be a number or a tensor, got 'two'"):
        fenchel.budget(X, k="two")


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"weight": torch.ones(3)}])
@pytest.mark.parametrize("class_index", [3, -1, 100])
def test_a_target_lies_in_range(loss, class_index, options):
    with broken(f"target must be in [0, 2] or -100, got {class_index}"):
        loss(X, torch.tensor([0, class_index]), **options)


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
@pytest.mark.parametrize("target", [torch.tensor([-100, -100]), torch.ones(2, 0)])
def test_there_is_a_class_to_choose(loss, target):
    with broken("there must be at least one class, got scores of"):
        loss(torch.ones(2, 0), target)


@pytest.mark.parametrize("omega", [fenchel.Norm, 1.5, None])
def test_the_loss_of_a_regularizer_is_given_one(omega):
    with broken("omega must be a regularizer such as fenchel.Norm(), got"):
        fenchel.fenchel_young_loss(X, TARGET, omega)


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            torch.tensor([0, 1, 2]),
            "a target of class indices must have shape (2,) for scores of shape (2, 3), got (3,)",
        ),
        (torch.tensor(0), "a target of class indices must have shape (2,) for"),
        (
            torch.full((2, 2), 0.5),
            "a target of probabilities must have shape (2, 3) for scores of shape (2, 3), got (2, 2)",
        ),
        (
            torch.tensor([0.0, 1.0]),
            "a target of probabilities must have shape (2, 3) for scores of shape (2, 3)",
        ),
        (
            torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.25, 0.0]]),
            "target probabilities must sum to one, got a sum of 0.75",
        ),
        (
            torch.tensor([[1.5, -0.5, 0.0], [0.5, 0.5, 0.0]]),
            "target probabilities must be at least 0, got",
        ),
        (torch.full((2, 3), NAN), "target probabilities must be at least 0, got"),
        (
            torch.tensor([True, False]),
            "target must have an integer or floating dtype, got torch.bool",
        ),
        ([0, 1], "target must be a torch.Tensor, got list"),
        (
            torch.full((2, 3), 1 / 3, requires_grad=True),
            "target must not require grad: pass target.detach()",
        ),
    ],
)
def test_a_target_holds_classes_or_probabilities_of_the_right_shape(loss, target, message):
    with broken(message):
        loss(X, target)


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
@pytest.mark.parametrize("reduction", ["average", "", None, "MEAN"])
def test_a_reduction_is_known(loss, reduction):
    with broken(f"reduction must be one of mean, sum, none, got {reduction!r}"):
        loss(X, TARGET, reduction=reduction)


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
@pytest.mark.parametrize(
    "index", [1.0, "1", None, True, torch.tensor(1.0), torch.tensor([1, 2]), torch.tensor(True)]
)
def test_ignore_index_is_a_class_index(loss, index):
    with broken(f"ignore_index must be an integer, got {index!r}"):
        loss(X, TARGET, ignore_index=index)


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
def test_the_weights_of_the_classes_are_real(loss):
    with broken("weight must be real, got torch.complex64"):
        loss(X, TARGET, weight=torch.ones(3, dtype=torch.complex64))


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
@pytest.mark.parametrize("smoothing", [-0.1, 1.1, NAN, "0.1", None, True])
def test_label_smoothing_is_between_zero_and_one(loss, smoothing):
    with broken(f"label_smoothing must be a number in [0, 1], got {smoothing!r}"):
        loss(X, TARGET, label_smoothing=smoothing)


@pytest.mark.parametrize("loss", LOSSES, ids=_name)
def test_weight_has_one_value_per_class(loss):
    with broken("weight must be a tensor of shape (3,), got (2,)"):
        loss(X, TARGET, weight=torch.ones(2))
    with broken("weight must be a tensor of shape (3,), got list"):
        loss(X, TARGET, weight=[1.0, 1.0, 1.0])


@pytest.mark.parametrize("kind", [fenchel.Shannon, fenchel.Gini, fenchel.Tsallis, fenchel.Norm])
@pytest.mark.parametrize("gamma", [0.0, -1.0, NAN, INF])
def test_gamma_is_a_temperature(kind, gamma):
    bound = "above 0 and finite"
    with broken(f"gamma must be {bound}, got {gamma}"):
        kind(gamma=gamma)


@pytest.mark.parametrize("gamma", ["2", None, True, torch.tensor(2.0)])
def test_where_a_tensor_is_not_taken_none_is_asked_for(gamma):
    with broken(f"gamma must be a number, got {gamma!r}"):
        fenchel.Gini(gamma=gamma)


def test_alpha_of_a_regularizer_is_checked_when_it_is_made():
    with broken("alpha must be above 0 and finite, got -1.0"):
        fenchel.Tsallis(-1.0)
    with broken("alpha must be above 1 and finite, got 1.0"):
        fenchel.Norm(1.0)
    with broken("alpha must be a number or a tensor, got '2'"):
        fenchel.Tsallis("2")


def test_an_implementation_is_known():
    with (
        broken("unknown implementation 'quick', must be one of reference, cpu, triton"),
        fenchel.implementation("quick"),
    ):
        pass


@pytest.mark.parametrize("loss", [fenchel.sparsemax_loss, fenchel.Norm().loss], ids=_name)
def test_a_refused_call_changes_nothing(loss):
    x, target = X.clone().requires_grad_(), torch.tensor([0, 7])
    with pytest.raises(fenchel.FenchelError):
        loss(x, target)
    assert torch.equal(x, X)
    assert target.tolist() == [0, 7]
    loss(x, TARGET).backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("function", [fenchel.entmax, fenchel.normmax], ids=_name)
def test_a_wrong_alpha_is_refused_in_every_transform(function):
    wrong = torch.tensor([[1.5], [-1.0]])
    with pytest.raises(fenchel.FenchelError):
        torch.func.vmap(function)(X, wrong)
    with pytest.raises(fenchel.FenchelError):
        torch.func.jvp(lambda x: function(x, wrong), (X,), (X,))
    with pytest.raises(fenchel.FenchelError):
        torch.compile(function, fullgraph=True, backend="aot_eager")(X, wrong)
