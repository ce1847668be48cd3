"""A map that follows the walk of CONTRIBUTING.md has an operator with all derivatives and transforms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

import fenchel
from fenchel.kernels import reference
from fenchel.operators import registration
from fenchel.operators.map_operator import MapOperator

NAME = "tempered"
REFERENCE = '''
"""Softmax with a temperature t: p = exp(x/t)/Σ exp(x/t)."""

import torch


def tempered(rows, temperature):
    wide = rows.double() / temperature
    p = torch.softmax(wide, -1)
    return torch.where(wide.isneginf().all(-1, keepdim=True), 0.0, p).to(rows.dtype)


def tempered_backward(grad, p, temperature, dim=-1):
    return p * (grad - (p * grad).sum(dim, keepdim=True)) / temperature


def tempered_derivative(p, temperature, dim=-1):
    log_p = torch.log(torch.where(p > 0, p, 1.0))
    return -p * (log_p - (p * log_p).sum(dim, keepdim=True)) / temperature


def tempered_backward_temperature(grad, p, temperature):
    by_temperature = (grad * tempered_derivative(p, temperature)).sum(-1)
    return tempered_backward(grad, p, temperature).to(p.dtype), by_temperature.double()
'''
X = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TEMPERATURE = torch.tensor([[0.5], [1.0], [2.0]], dtype=torch.float64)


@pytest.fixture(scope="module")
def tempered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Tensor]]:
    """Step 1, a file in `kernels/reference`, and step 2, an operator and the public function."""
    folder: Path = tmp_path_factory.mktemp("reference")
    (folder / f"{NAME}.py").write_text(REFERENCE, encoding="utf-8")
    library = torch.library.Library("fenchel", "FRAGMENT")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "__path__", [*reference.__path__, str(folder)])
        patch.setattr(registration, "_library", library)
        operator = MapOperator[Tensor](NAME, "temperature", above=0)

        def public(
            scores: Tensor,
            temperature: float | Tensor = 1.0,
            dim: int = -1,
            mask: Tensor | None = None,
        ) -> Tensor:
            return operator(scores, temperature, dim, mask)

        yield public
    library._destroy()  # other tests list the operators of the library
    sys.modules.pop(f"{reference.__name__}.{NAME}", None)


def plain(x: Tensor, temperature: float | Tensor) -> Tensor:
    return torch.softmax(x / temperature, -1)


def test_it_runs_on_the_reference_until_it_has_kernels(tempered: Callable[..., Tensor]) -> None:
    (choice,) = fenchel.explain(tempered, X, 0.5)
    assert str(choice) == f"{NAME}: reference (there is no Numba kernel for {NAME})"
    torch.testing.assert_close(tempered(X, 0.5), plain(X, 0.5))


def test_it_has_a_dimension_a_mask_and_checked_arguments(tempered: Callable[..., Tensor]) -> None:
    torch.testing.assert_close(tempered(X.T, 0.5, dim=0), plain(X, 0.5).T)
    mask = torch.tensor([True, False, True, True])
    assert torch.equal(tempered(X, mask=mask) == 0, ~mask.expand(3, 4))
    assert tempered(X.half(), 0.5).dtype == torch.float16
    with pytest.raises(fenchel.FenchelError, match="temperature must be above 0 and finite, got 0"):
        tempered(X, 0.0)


def test_it_has_derivatives_of_first_and_second_order(tempered: Callable[..., Tensor]) -> None:
    inputs = X.clone().requires_grad_(), TEMPERATURE.clone().requires_grad_()
    assert torch.autograd.gradcheck(tempered, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(tempered, inputs)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: torch.vmap(f)(X),
        lambda f: torch.func.jacrev(f)(X),
        lambda f: torch.func.jacfwd(f)(X),
        lambda f: torch.func.hessian(lambda x: f(x).square().sum())(X),
        lambda f: torch.compile(f, backend="aot_eager", fullgraph=True)(X),
    ],
    ids=["vmap", "jacrev", "jacfwd", "hessian", "compile"],
)
def test_it_works_under_transforms(
    tempered: Callable[..., Tensor], transform: Callable[..., Tensor]
) -> None:
    found = transform(lambda x: tempered(x, 0.5))
    torch.testing.assert_close(found, transform(lambda x: plain(x, 0.5)))


def test_its_operator_passes_the_checks_of_torch(tempered: Callable[..., Tensor]) -> None:
    operator = getattr(torch.ops.fenchel, NAME)
    torch.library.opcheck(operator.default, (X, 0.5, None, -1))
    torch.library.opcheck(operator.tensor, (X, TEMPERATURE, None, -1))
