"""Layers of continuous attention: the three ways of the paper, heads, modes, and all that varies."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

import fenchel
from fenchel.continuous import (
    GaussianBasis,
    attention_moments,
    entmax,
    regular_positions,
    ridge_values,
)
from fenchel.nn import (
    AdditiveAttention,
    ContinuousAttention1d,
    ContinuousAttention2d,
    GeneralAttention,
)

LINE = GaussianBasis.grid(6, (0.1, 0.4), dtype=torch.float64)
PLANE = GaussianBasis.grid((4, 4), 0.2, dtype=torch.float64)
QUERY, SIZE = 5, 6


def layers(heads: int = 1, modes: int = 1, alpha: float = 2.0) -> dict[str, nn.Module]:
    torch.manual_seed(4)

    def attentions() -> list[nn.Module]:
        return [GeneralAttention(QUERY, SIZE) for _ in range(heads)]

    options = {"modes": modes, "alpha": alpha}
    made = {
        "pooled 1d": ContinuousAttention1d.pooled(QUERY, LINE, heads=heads, **options),
        "moments 1d": ContinuousAttention1d.moments(attentions(), LINE, **options),
        "combined 1d": ContinuousAttention1d.combined(attentions(), LINE, **options),
        "pooled 2d": ContinuousAttention2d.pooled(QUERY, PLANE, heads=heads, **options),
        "moments 2d": ContinuousAttention2d.moments(attentions(), PLANE, **options),
        "combined 2d": ContinuousAttention2d.combined(attentions(), PLANE, **options),
    }
    return {name: layer.double() for name, layer in made.items()}


NAMES = tuple(layers())


def positions(name: str) -> tuple[int, ...] | None:
    return (3, 4) if name.endswith("2d") else None


def inputs(*batch: int) -> tuple[Tensor, Tensor]:
    query = torch.randn(*batch, QUERY, dtype=torch.float64)
    return query, torch.randn(batch[0], 12, SIZE, dtype=torch.float64)


def test_pooled_parameters_are_sigmoid_and_softplus():
    layer = layers()["pooled 1d"]
    query, values = inputs(3)
    context, density = layer(query, values)
    source = layer.parameters_of
    loc = torch.sigmoid(source.location(query))
    variance = nn.functional.softplus(source.spread(query)) + 1e-6
    torch.testing.assert_close(density.loc.flatten(), loc.flatten())
    torch.testing.assert_close(density.variance.flatten(), variance.flatten())
    r = entmax(loc.squeeze(-1), variance.squeeze(-1), LINE, 2.0)
    expected = (r.unsqueeze(1) @ ridge_values(values, None, LINE, 0.1)).squeeze(1)
    torch.testing.assert_close(context, expected)


def test_on_the_line_parameters_are_the_moments_of_the_discrete_attention():
    layer = layers()["moments 1d"]
    query, values = inputs(3)
    _, density = layer(query, values)
    _, weights = layer.parameters_of.attentions[0](query, values)
    places = regular_positions(12, dtype=torch.float64)
    loc, variance = attention_moments(weights, places, 1 / (12 * 12**2))
    torch.testing.assert_close(density.loc.reshape(loc.shape), loc)
    torch.testing.assert_close(density.variance.reshape(variance.shape), variance)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_in_the_plane_the_density_has_the_moments_of_the_discrete_attention(alpha):
    layer = layers(alpha=alpha)["moments 2d"]
    query, values = inputs(3)
    _, density = layer(query, values, positions=(3, 4))
    _, weights = layer.parameters_of.attentions[0](query, values)
    places = regular_positions(3, 4, dtype=torch.float64)
    loc, covariance = attention_moments(weights, places, 1 / (12 * 12), dims=2)
    found = density.modes(alpha)
    torch.testing.assert_close(found.mean.reshape(loc.shape), loc)
    actual = found.covariance_matrix if alpha == 1 else found.covariance
    torch.testing.assert_close(actual.reshape(covariance.shape), covariance)
    if alpha == 2:
        by_paper = 9 * torch.pi * torch.det(covariance).sqrt()[..., None, None] * covariance
        torch.testing.assert_close(density.variance.reshape(covariance.shape), by_paper)


@pytest.mark.parametrize("dims", ["1d", "2d"])
def test_the_combined_context_is_the_sum_and_has_no_new_parameters(dims):
    made = layers(heads=2)
    moments, combined = made[f"moments {dims}"], made[f"combined {dims}"]
    combined.load_state_dict(moments.state_dict())
    query, values = inputs(3)
    place = positions(dims)
    alone, _ = moments(query, values, positions=place)
    both, _ = combined(query, values, positions=place)
    discrete = torch.cat(
        [
            attend(query, values)[0][:, 3 * head : 3 * head + 3]
            for head, attend in enumerate(combined.parameters_of.attentions)
        ],
        -1,
    )
    torch.testing.assert_close(both, alone + discrete)
    attention = AdditiveAttention(QUERY, SIZE, 4)
    basis = LINE if dims == "1d" else PLANE
    layer = (ContinuousAttention1d if dims == "1d" else ContinuousAttention2d).combined(
        attention, basis
    )
    assert {id(p) for p in layer.parameters()} == {id(p) for p in attention.parameters()}


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("heads", "modes"), [(1, 1), (3, 1), (2, 3)])
def test_shapes_and_gradients_of_every_layer(name, heads, modes, alpha):
    layer = layers(heads, modes, alpha)[name]
    query, values = inputs(2)
    steps = torch.stack((query, query + 1), 1)
    leaves = [x.requires_grad_() for x in (query, values, steps)]
    context, density = layer(query, values, positions=positions(name))
    several, many = layer(steps, values, positions=positions(name))
    assert context.shape == (2, SIZE)
    assert several.shape == (2, 2, SIZE)
    torch.testing.assert_close(several[:, 0], context)
    tail = (2,) if name.endswith("2d") else ()
    assert density.loc.shape == (2, heads, modes, *tail)
    assert many.variance.shape == (2, 2, heads, modes, *tail, *tail)
    torch.testing.assert_close(density.mixing.sum(-1), torch.ones(2, heads).double())
    (context.square().sum() + several.sum()).backward()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)
    assert all((p.grad is not None and p.grad.isfinite().all()) for p in layer.parameters())


@pytest.mark.parametrize("name", ["pooled 1d", "moments 1d", "combined 1d"])
def test_lengths_and_masks_are_a_loop_over_the_sequences(name):
    layer = layers(heads=2, modes=2)[name]
    query, values = inputs(3)
    lengths = torch.tensor([12, 5, 1])
    spoilt = values.clone()
    for i, length in enumerate(lengths.tolist()):
        spoilt[i, length:] = 1e3
    context, density = layer(query, spoilt, lengths)
    for i, length in enumerate(lengths.tolist()):
        alone, apart = layer(query[i : i + 1], values[i : i + 1, :length])
        torch.testing.assert_close(context[i : i + 1], alone)
        torch.testing.assert_close(density.loc[i : i + 1], apart.loc)
    stamps = torch.rand(3, 12, dtype=torch.float64)
    mask = torch.arange(12) < lengths.unsqueeze(-1)
    masked, _ = layer(query, spoilt, mask=mask, positions=stamps)
    for i, length in enumerate(lengths.tolist()):
        alone, _ = layer(query[i : i + 1], values[i : i + 1, :length], positions=stamps[i, :length])
        torch.testing.assert_close(masked[i : i + 1], alone)


@pytest.mark.parametrize("name", ["pooled 1d", "moments 1d", "combined 1d"])
def test_one_mask_for_all_is_the_same_mask_for_each(name):
    layer, (query, values) = layers()[name], inputs(2, 12)  # as many steps as values
    mask = torch.arange(12) % 3 > 0
    each, _ = layer(query, values, mask=mask.expand(2, 12))
    torch.testing.assert_close(layer(query, values, mask=mask)[0], each)


@pytest.mark.parametrize("name", ["pooled 2d", "moments 2d", "combined 2d"])
def test_bounding_boxes_are_places(name):
    layer = layers()[name]
    query, values = inputs(2)
    boxes = torch.rand(2, 12, 2, dtype=torch.float64)
    mask = torch.rand(2, 12) < 0.7
    mask[:, 0] = True
    context, _ = layer(query, values, mask=mask, positions=boxes)
    for i in range(2):
        kept = mask[i]
        alone, _ = layer(
            query[i : i + 1], values[i : i + 1, kept], positions=boxes[i : i + 1, kept]
        )
        torch.testing.assert_close(context[i : i + 1], alone)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_valid_may_hold_anything(name):
    layer = layers(heads=2, modes=2)[name]
    query, values = inputs(2)
    mask = torch.rand(2, 12) < 0.6
    mask[:, 3] = True
    plane = name.endswith("2d")
    places = torch.rand(2, 12, *[2][: int(plane)], dtype=torch.float64)
    exact, _ = layer(query, values, mask=mask, positions=places)
    values = values.masked_fill(~mask.unsqueeze(-1), torch.nan)
    hidden = ~mask.unsqueeze(-1) if plane else ~mask
    places = places.masked_fill(hidden, torch.nan)
    computed, _ = layer(query, values, mask=mask, positions=places)
    torch.testing.assert_close(computed, exact)


def test_coefficients_may_be_fitted_once():
    for name in NAMES:
        layer = layers()[name]
        query, values = inputs(2)
        once = layer.fit(values, positions=positions(name))
        expected, _ = layer(query, values, positions=positions(name))
        reused, _ = layer(query, values, positions=positions(name), coefficients=once)
        torch.testing.assert_close(reused, expected)


def test_a_second_call_before_backward_does_not_change_a_gradient():
    for name in NAMES:
        layer = layers()[name]
        first, second = inputs(2), inputs(2)
        first[0].requires_grad_()
        context, _ = layer(*first, positions=positions(name))
        layer(*second, positions=positions(name))
        (after,) = torch.autograd.grad(context.square().sum(), first[0])
        context, _ = layer(*first, positions=positions(name))
        (alone,) = torch.autograd.grad(context.square().sum(), first[0])
        assert torch.equal(after, alone)


def test_a_mixture_of_equal_modes_is_one_mode():
    layer = layers(modes=2)["pooled 1d"]
    source = layer.parameters_of
    with torch.no_grad():
        for part in (source.location, source.spread):
            part.weight.copy_(part.weight[:1].expand_as(part.weight))
            part.bias.copy_(part.bias[:1].expand_as(part.bias))
    query, values = inputs(3)
    context, density = layer(query, values)
    single = entmax(density.loc[..., 0], density.variance[..., 0], LINE, 2.0)
    expected = (single @ ridge_values(values, None, LINE, 0.1)).squeeze(1)
    torch.testing.assert_close(context, expected)


def test_layers_train_in_half_precision_under_autocast():
    for name in NAMES:
        layer = layers(heads=2, modes=2)[name].float()
        query, values = (x.float() for x in inputs(2))
        with torch.autocast("cpu", torch.bfloat16):
            context, density = layer(query, values, positions=positions(name))
            context.float().square().sum().backward()
        exact, _ = layer(query, values, positions=positions(name))
        assert {part.dtype for part in density} == {torch.float32}
        torch.testing.assert_close(context.float(), exact, rtol=0.1, atol=0.1)


def test_a_layer_compiles_and_can_be_copied_and_saved():
    layer = layers(heads=2)["pooled 1d"]
    query, values = inputs(2)
    expected, _ = layer(query, values)
    twin = copy.deepcopy(layer)
    twin.load_state_dict(layer.state_dict())
    torch.testing.assert_close(twin(query, values)[0], expected)
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(query, values)[0], expected)
    assert "ContinuousAttention1d(" in repr(layer)
    assert "alpha=2.0" in repr(layer)


def test_the_density_of_a_layer_is_a_distribution():
    layer = layers()["combined 1d"]
    query, values = inputs(2)
    _, density = layer(query, values)
    shown = density.distribution(layer.alpha)
    assert shown.batch_shape == (2, 1)
    assert fenchel.continuous.tsallis_negentropy(density.modes(2.0), 2.0).shape == (2, 1, 1)
    one = density.at(1, 0).distribution(layer.alpha)
    t = torch.tensor(0.4, dtype=torch.float64)
    torch.testing.assert_close(one.log_prob(t), shown.log_prob(t)[1, 0])
