"""`attention_weights`: real CSR tensors, padded with the fewest zeros."""

from __future__ import annotations

import pytest
import torch

from fenchel.mechanisms.functional import attention, attention_weights


def draw(*shape: int, dtype=torch.float64):
    return 3 * torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)


@pytest.mark.parametrize("batch", [(), (4,), (2, 4), (3, 2, 4)])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("arguments", [{}, {"is_causal": True, "window": 2}])
def test_weights_are_those_of_attention(batch, alpha, arguments):
    q, k = draw(*batch, 5, 3), draw(*batch, 7, 3)
    weights = attention_weights(q, k, alpha=alpha, **arguments)
    assert weights.layout == torch.sparse_csr
    assert weights.shape == (*batch, 5, 7)
    identity = torch.eye(7, dtype=q.dtype).expand(*batch, 7, 7)
    expected = attention(q, k, identity, alpha=alpha, **arguments)
    torch.testing.assert_close(weights.to_dense(), expected)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4)])
def test_no_more_zeros_are_stored_than_the_fullest_matrix_needs(shape):
    q, k = draw(*shape, 5, 3), draw(*shape, 7, 3)
    weights = attention_weights(q, k, alpha=2.0)
    most = (weights.to_dense() != 0).sum((-2, -1)).max()
    assert weights.values().shape == (*shape, most)
    assert (weights.to_dense() == 0).any()


def test_one_matrix_stores_no_zeros():
    weights = attention_weights(draw(5, 3), draw(7, 3), alpha=2.0)
    assert (weights.values() > 0).all()


def test_half_precision_stores_no_value_that_rounds_to_zero():
    q, k = draw(5, 3, dtype=torch.float16), draw(7, 3, dtype=torch.float16)
    weights = attention_weights(4 * q, k, alpha=1.0)
    assert weights.dtype == torch.float16
    assert (weights.values() > 0).all()
    assert weights.values().numel() < 35


def test_no_derivatives():
    q, k = draw(2, 5, 3).requires_grad_(), draw(2, 7, 3).requires_grad_()
    assert not attention_weights(q, k).requires_grad


@pytest.mark.parametrize(("q", "k"), [((0, 5, 3), (0, 7, 3)), ((2, 5, 3), (2, 0, 3))])
def test_empty(q, k):
    weights = attention_weights(torch.randn(q), torch.randn(k))
    assert weights.shape == (*q[:-1], k[-2])
    assert weights.values().numel() == 0


def test_grouped_heads():
    q, k = draw(2, 4, 5, 3), draw(2, 2, 7, 3)
    weights = attention_weights(q, k, enable_gqa=True)
    expected = attention_weights(q, k.repeat_interleave(2, 1))
    torch.testing.assert_close(weights.to_dense(), expected.to_dense())
