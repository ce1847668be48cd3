"""`fenchel.compat.entmax` is the package `entmax` 1.3: its names and its tests, not its faults."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import fenchel
from fenchel.compat import entmax as ours

theirs = pytest.importorskip("entmax")
MODULES = ["", ".activations", ".losses", ".root_finding"]

# Their tests draw unseeded numbers.
SEEDED = """
import pytest
import torch

torch.manual_seed(0)

@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
"""


def defined(module) -> dict[str, object]:
    """The public functions and classes of a module, without what it imports from elsewhere."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(module.__name__)
    }


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_there_with_its_arguments_and_defaults(module):
    mine = importlib.import_module(f"fenchel.compat.entmax{module}")
    names = defined(importlib.import_module(f"entmax{module}"))
    assert names
    for name, value in names.items():
        if isinstance(value, type) and issubclass(value, torch.autograd.Function):
            assert callable(getattr(mine, name).apply)
            continue
        expected = inspect.signature(value).parameters.values()
        got = inspect.signature(getattr(mine, name)).parameters.values()
        assert [(p.name, p.default) for p in got] == [(p.name, p.default) for p in expected], name


@pytest.mark.slow
def test_their_tests_pass_with_the_import_changed(tmp_path):
    sources = sorted(Path(theirs.__file__).parent.glob("test_*.py"))
    assert len(sources) == 4
    for source in sources:
        text = source.read_text()
        assert "from entmax." in text
        (tmp_path / source.name).write_text(
            text.replace("from entmax", "from fenchel.compat.entmax")
        )
    (tmp_path / "conftest.py").write_text(SEEDED)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


X, TARGET = 2 * draw(6, 9), torch.tensor([0, 3, 8, 2, 2, 1])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sparsemax", {"dim": 0, "k": 3}),
        ("entmax15", {"dim": 1, "k": 3}),
        ("sparsemax_bisect", {}),
        ("entmax_bisect", {"alpha": 1.3}),
        ("entmax_bisect", {"alpha": 0.6, "dim": 0}),
        ("normmax_bisect", {"alpha": 3.0}),
        ("budget_bisect", {"budget": 3}),
        ("budget_bisect", {"budget": 20}),
    ],
)
def test_maps_agree(name, arguments):
    expected = getattr(theirs, name)(X, **arguments)
    torch.testing.assert_close(getattr(ours, name)(X, **arguments), expected)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sparsemax_loss", {"k": 4}),
        ("entmax15_loss", {}),
        ("sparsemax_bisect_loss", {}),
        ("entmax_bisect_loss", {"alpha": 1.3}),
        ("normmax_bisect_loss", {"alpha": 2.0}),
    ],
)
def test_losses_agree(name, arguments):
    expected = getattr(theirs, name)(X, TARGET, **arguments)
    torch.testing.assert_close(getattr(ours, name)(X, TARGET, **arguments), expected)


@pytest.mark.parametrize(
    "name", ["SparsemaxLoss", "SparsemaxBisectLoss", "Entmax15Loss", "EntmaxBisectLoss"]
)
@pytest.mark.parametrize("reduction", ["elementwise_mean", "sum", "none"])
@pytest.mark.parametrize("ignore_index", [-100, 2])
def test_loss_modules_agree(name, reduction, ignore_index):
    options = {"reduction": reduction, "ignore_index": ignore_index}
    expected = getattr(theirs, name)(**options)(X, TARGET)
    torch.testing.assert_close(getattr(ours, name)(**options)(X, TARGET), expected)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_normmax_below_one_is_the_corner_that_solves_its_problem(alpha):
    result = ours.normmax_bisect(X, alpha)
    torch.testing.assert_close(result, nn.functional.one_hot(X.argmax(-1), 9).double())
    value = (result * X).sum(-1) - result.pow(alpha).sum(-1) ** (1 / alpha)
    others = fenchel.softmax(draw(400, 1, 9) * 3)
    rival = (others * X).sum(-1) - others.pow(alpha).sum(-1) ** (1 / alpha)
    assert (value >= rival).all()
    near = ours.normmax_bisect(X, 1 + 1e-4)
    torch.testing.assert_close(near, ours.normmax_bisect(X, 1.0))


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_normmax_of_odd_rows(alpha):
    rows = torch.tensor([[-torch.inf, -torch.inf], [torch.nan, 1.0], [1.0, 1.0]])
    result = ours.normmax_bisect(rows, torch.tensor(alpha))
    assert (result[0] == 0).all()
    assert result[1].isnan().all()
    torch.testing.assert_close(result[2], torch.tensor([0.5, 0.5]))


def test_alpha_one_is_softmax_and_has_a_gradient():
    alpha = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    result = ours.entmax_bisect(X, alpha)
    torch.testing.assert_close(result, torch.softmax(X, -1))
    assert torch.autograd.gradcheck(ours.entmax_bisect, (X, alpha))


def test_alpha_may_be_a_parameter_in_maps_and_losses():
    alpha = nn.Parameter(torch.tensor(1.3))
    (ours.EntmaxBisect(alpha)(X)[:, 0].sum() + ours.EntmaxBisectLoss(alpha)(X, TARGET)).backward()
    assert alpha.grad.isfinite()
    assert alpha.grad != 0


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_k_works_along_every_dim(name):
    x = draw(3, 4, 5)
    expected = getattr(ours, name)(x, dim=1)
    torch.testing.assert_close(getattr(ours, name)(x, dim=-2, k=2), expected)


def test_an_ignored_target_costs_nothing_and_mean_is_a_reduction():
    target = TARGET.clone()
    target[1] = -100
    kept = [0, 2, 3, 4, 5]
    expected = ours.entmax15_loss(X[kept], TARGET[kept])
    torch.testing.assert_close(ours.Entmax15Loss(reduction="mean")(X, target), expected.mean())
    assert ours.entmax15_loss(X, target)[1] == 0


def test_a_large_batch_has_a_mean_in_half_precision():
    x, target = torch.tensor([3.0, 0.0]).half().expand(70_000, 2), torch.tensor([1]).expand(70_000)
    mean = ours.Entmax15Loss()(x, target)
    torch.testing.assert_close(mean, ours.entmax15_loss(x[0], target[0]))


def test_masked_rows_and_minus_infinity():
    x = X.clone()
    x[:, 4:] = -torch.inf
    x[0] = -torch.inf
    assert (ours.entmax_bisect(x)[0] == 0).all()
    assert ours.entmax15_loss(x[1:], torch.zeros(5).long()).isfinite().all()


def test_an_unknown_reduction_is_refused():
    with pytest.raises(fenchel.FenchelError, match="reduction must be one of"):
        ours.SparsemaxLoss(reduction="average")


SCORES = {
    "sparsemax": ours.sparsemax,
    "entmax15": ours.entmax15,
    "sparsemax_bisect": ours.sparsemax_bisect,
    "entmax_bisect": ours.entmax_bisect,
    "normmax_bisect": ours.normmax_bisect,
    "normmax_bisect, one alpha a row": lambda X, **more: ours.normmax_bisect(
        X, torch.full((6, 1), 0.5), **more
    ),
    "budget_bisect": ours.budget_bisect,
}


@pytest.mark.parametrize("name", SCORES)
def test_wrong_scores_and_dims_break_a_rule(name):
    for scores in (None, "scores", X.tolist(), X.long(), torch.tensor(1.0), X.to_sparse()):
        with pytest.raises(fenchel.FenchelError, match="scores must"):
            SCORES[name](scores)
    for dim in (2, -3, None, 0.0):
        with pytest.raises(fenchel.FenchelError, match="dim must be an integer in"):
            SCORES[name](X, dim=dim)


@pytest.mark.parametrize("name", ["entmax_bisect", "normmax_bisect", "budget_bisect"])
@pytest.mark.parametrize("wrong", [None, "2", [2.0], True, float("nan"), -1.0])
def test_wrong_parameters_break_a_rule(name, wrong):
    with pytest.raises(fenchel.FenchelError, match="must be"):
        getattr(ours, name)(X, wrong)


@pytest.mark.parametrize("name", SCORES)
def test_rows_without_scores_are_without_probabilities(name):
    assert SCORES[name](torch.zeros(6, 0)).shape == (6, 0)


def test_wrong_targets_and_settings_of_losses_break_a_rule():
    for wrong in (None, TARGET.tolist(), "1"):
        with pytest.raises(fenchel.FenchelError, match=r"target must be a torch\.Tensor"):
            ours.SparsemaxLoss()(X, wrong)
    with pytest.raises(fenchel.FenchelError, match="reduction must be one of"):
        ours.SparsemaxLoss(reduction=[])
    with pytest.raises(fenchel.FenchelError, match="ignore_index must be an integer"):
        ours.SparsemaxLoss(ignore_index="first")
