"""Modules are the functions, with their settings, parameters and buffers."""

from __future__ import annotations

from inspect import Parameter, signature

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

import fenchel
import fenchel.nn as fnn

SCORES = 2 * torch.randn(3, 2, 4, 5, generator=torch.Generator().manual_seed(0))
MASK = torch.rand(3, 2, 4, 5, generator=torch.Generator().manual_seed(1)) < 0.7

BASIS = fenchel.continuous.GaussianBasis.grid(4, 0.2)

MAPS = [
    (fnn.Softmax, {}, fenchel.softmax),
    (fnn.Sparsemax, {}, fenchel.sparsemax),
    (fnn.Entmax, {"alpha": 1.3}, fenchel.entmax),
    (fnn.Entmax, {"alpha": torch.tensor([[1.2], [1.4], [1.6], [1.8]])}, fenchel.entmax),
    (fnn.Normmax, {"alpha": 3.0}, fenchel.normmax),
    (fnn.Budget, {"k": 3}, fenchel.budget),
    (fnn.Budget, {"k": torch.tensor([[1.0], [2.0], [3.0], [2.5]])}, fenchel.budget),
    (fnn.Pnormmax, {"p": 1.3}, fenchel.pnormmax),
    (fnn.Fusedmax, {"strength": torch.tensor([[0.01], [0.1], [0.3], [0.0]])}, fenchel.fusedmax),
    (fnn.Oscarmax, {"strength": nn.Parameter(torch.tensor(0.1))}, fenchel.oscarmax),
    (fnn.Fusedmax2d, {"strength": 0.2}, fenchel.fusedmax2d),
]


@pytest.mark.parametrize(("module", "options", "function"), MAPS)
@pytest.mark.parametrize("mask", [None, MASK])
def test_a_map_is_its_function(module, options, function, mask):
    expected = function(SCORES, **options, mask=mask)
    torch.testing.assert_close(module(**options)(SCORES, mask=mask), expected)


@pytest.mark.parametrize(
    "module",
    [fnn.Softmax, fnn.Sparsemax, fnn.Entmax, fnn.Normmax, fnn.Fusedmax, fnn.Oscarmax, fnn.Pnormmax],
)
def test_dim_is_a_setting_that_a_call_may_override(module):
    expected = module()(SCORES.movedim(1, -1)).movedim(-1, 1)
    torch.testing.assert_close(module(dim=1)(SCORES), expected)
    torch.testing.assert_close(module()(SCORES, dim=1), expected)


@pytest.mark.parametrize("mask", [None, MASK])
def test_logistic_weights_are_independent(mask):
    expected = torch.sigmoid(SCORES) if mask is None else torch.sigmoid(SCORES) * mask
    torch.testing.assert_close(fnn.Logistic()(SCORES, mask=mask), expected)


FUNCTIONS = {
    "Budget": fenchel.budget,
    "Entmax": fenchel.entmax,
    "EntmaxLoss": fenchel.entmax_loss,
    "FenchelYoungLoss": fenchel.fenchel_young_loss,
    "Fusedmax": fenchel.fusedmax,
    "Fusedmax2d": fenchel.fusedmax2d,
    "LinearEntmaxLoss": fenchel.linear_entmax_loss,
    "Normmax": fenchel.normmax,
    "Oscarmax": fenchel.oscarmax,
    "Pnormmax": fenchel.pnormmax,
    "Softmax": fenchel.softmax,
    "Sparsemax": fenchel.sparsemax,
    "SparsemaxLoss": fenchel.sparsemax_loss,
}
INPUTS = {"scores", "target", "hidden", "mask", "bias"}
WITHOUT_FUNCTION = {
    "AdditiveAttention",
    "ContinuousAttention1d",
    "ContinuousAttention2d",
    "GeneralAttention",
    "Logistic",
    "MultiheadAttention",  # follows torch.nn.MultiheadAttention
}


def test_every_module_is_compared_with_its_function():
    assert set(FUNCTIONS) | WITHOUT_FUNCTION == set(fnn.__all__)


def positional(callable_) -> list[str]:
    return [
        name
        for name, parameter in signature(callable_).parameters.items()
        if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_positional_settings_are_those_of_the_function_in_its_order(name):
    module, function = getattr(fnn, name), signature(FUNCTIONS[name]).parameters
    called = signature(module.forward).parameters
    inputs = INPUTS | ({"weight"} if "weight" in called else set())
    expected = [parameter for parameter in function if parameter not in inputs]
    assert positional(module) == expected
    for setting in expected:
        assert signature(module).parameters[setting].default == function[setting].default


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_has_the_inputs_of_the_function_in_its_order(name):
    called = list(signature(getattr(fnn, name).forward).parameters)[1:]
    assert called == [
        parameter for parameter in signature(FUNCTIONS[name]).parameters if parameter in called
    ]


def test_multihead_attention_has_the_signature_of_torch():
    for ours, theirs in (
        (fnn.MultiheadAttention, nn.MultiheadAttention),
        (fnn.MultiheadAttention.forward, nn.MultiheadAttention.forward),
    ):
        assert positional(ours) == positional(theirs)
        for name, parameter in signature(theirs).parameters.items():
            assert signature(ours).parameters[name].default == parameter.default


@pytest.mark.parametrize(
    "module", [fnn.Entmax, fnn.Normmax, fnn.Budget, fnn.Pnormmax, fnn.Fusedmax]
)
def test_the_second_positional_argument_is_dim(module):
    layer = module(1.5, 1)
    assert layer.dim == 1
    function = FUNCTIONS[module.__name__]
    assert torch.equal(layer(SCORES), function(SCORES, 1.5, 1))


def test_heads_is_a_keyword():
    with pytest.raises(TypeError, match="positional"):
        fnn.Entmax("learned", -1, 2)


@pytest.mark.parametrize("heads", [None, 2])
def test_learned_alpha_lies_between_softmax_and_sparsemax(heads):
    layer = fnn.Entmax(alpha="learned", heads=heads)
    assert layer.alpha.shape == (() if heads is None else (heads,))
    (logit,) = layer.parameters()
    with torch.no_grad():
        logit.copy_(torch.linspace(-3, 3, 2) if heads else torch.tensor(-3.0))
    torch.testing.assert_close(layer.alpha, 1 + torch.sigmoid(logit))
    expected = layer.alpha if heads is None else layer.alpha.view(2, 1, 1)
    torch.testing.assert_close(layer(SCORES), fenchel.entmax(SCORES, expected))
    layer(SCORES).square().sum().backward()
    assert (logit.grad != 0).all()


def test_a_learned_alpha_starts_where_it_is_told():
    assert fnn.Entmax("learned", alpha_start=1.25).alpha.item() == pytest.approx(1.25)
    torch.manual_seed(0)
    drawn = fnn.Entmax("learned", heads=100, alpha_start="random")
    assert drawn.alpha.std() > 0.1
    assert "alpha_start='random'" in repr(drawn)
    with pytest.raises(fenchel.FenchelError, match="alpha_start must be strictly between 1 and 2"):
        fnn.Entmax("learned", alpha_start=2.0)


UNTRACEABLE = [fnn.Entmax(), fnn.SparsemaxLoss(), fnn.ContinuousAttention1d.pooled(4, BASIS)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("module", UNTRACEABLE, ids=lambda module: type(module).__name__)
def test_torch_script_and_symbolic_tracing_name_what_to_use(module):
    for model in (module, nn.Sequential(nn.Linear(4, 4), module)):
        with pytest.raises(fenchel.FenchelError, match=r"not supported: use torch\.compile or"):
            torch.jit.script(model)
    with pytest.raises(fenchel.FenchelError, match=r"not supported: use torch\.compile or"):
        torch.fx.symbolic_trace(module)


def test_alpha_may_be_a_parameter():
    alpha = nn.Parameter(torch.tensor(1.3))
    layer = fnn.Entmax(alpha)
    assert list(layer.parameters()) == [alpha]
    layer(SCORES).square().sum().backward()
    assert alpha.grad != 0


def test_a_constant_alpha_moves_with_the_layer_and_is_not_saved():
    layer = fnn.Entmax(torch.tensor([1.2, 1.8]), heads=2).double()
    assert layer.alpha.dtype == torch.float64
    assert not layer.state_dict()
    expected = fenchel.entmax(SCORES.double(), layer.alpha.view(2, 1, 1))
    torch.testing.assert_close(layer(SCORES.double()), expected)


INDICES = torch.tensor([[0, 1, 4], [2, -7, 3]])
LOSS_SCORES = 2 * torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(2))
LOSSES = [
    (fnn.SparsemaxLoss, (), lambda *a, **k: fenchel.sparsemax_loss(*a, **k)),
    (fnn.EntmaxLoss, (1.3,), lambda *a, **k: fenchel.entmax_loss(*a, 1.3, **k)),
    (
        fnn.FenchelYoungLoss,
        (fenchel.Norm(2.0),),
        lambda *a, **k: fenchel.fenchel_young_loss(*a, fenchel.Norm(2.0), **k),
    ),
]


@pytest.mark.parametrize(("module", "arguments", "function"), LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_loss_is_its_function_with_every_option(module, arguments, function, reduction):
    options = {
        "weight": torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0]),
        "ignore_index": -7,
        "reduction": reduction,
        "label_smoothing": 0.1,
    }
    expected = function(LOSS_SCORES, INDICES, **options)
    torch.testing.assert_close(module(*arguments, **options)(LOSS_SCORES, INDICES), expected)
    assert list(module(*arguments, **options).state_dict()) == ["weight"]


def test_alpha_of_a_loss_may_be_learned():
    loss = fnn.EntmaxLoss("learned")
    loss(LOSS_SCORES, INDICES.clamp(0)).backward()
    assert loss.exponent.logit.grad != 0


class Weighted(nn.Module):
    """A quadratic Ω with parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.logs = nn.Parameter(torch.zeros(5))

    def forward(self, p: Tensor) -> Tensor:
        return (self.logs.exp() * p.square()).sum(-1)


def learned(value: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(value))


@pytest.mark.parametrize(
    "make",
    [
        lambda: fenchel.Tsallis(learned(1.5)),
        lambda: fenchel.Norm(learned(2.0)),
        lambda: fenchel.PNorm(learned(1.5)),
        lambda: fenchel.Fused(learned(0.1)),
        lambda: fenchel.Oscar(learned(0.1)),
        lambda: fenchel.Custom(Weighted()),
    ],
)
def test_what_a_regularizer_learns_is_a_parameter_of_its_loss(make):
    loss, target = fnn.FenchelYoungLoss(make()), INDICES.clamp(0)
    ((name, parameter),) = loss.named_parameters()
    loss(LOSS_SCORES, target).backward()
    assert parameter.grad.abs().sum() > 0
    other = fnn.FenchelYoungLoss(make())
    other.load_state_dict({name: parameter.detach() + 0.1})
    replaced = functional_call(loss, {name: parameter.detach() + 0.1}, (LOSS_SCORES, target))
    torch.testing.assert_close(replaced, other(LOSS_SCORES, target))
    assert replaced != loss(LOSS_SCORES, target)


def test_a_constant_of_a_regularizer_moves_with_its_loss():
    loss = fnn.FenchelYoungLoss(fenchel.Norm(torch.tensor([2.0, 3.0]).view(2, 1)))
    assert not loss.state_dict()
    scores = torch.empty(2, 5, device="meta")
    assert loss.to("meta")(scores, torch.empty(2, dtype=torch.long, device="meta")).is_meta


def test_losses_take_the_options_of_cross_entropy_in_its_order():
    weight = torch.arange(1.0, 6.0)
    loss, entropy = fnn.EntmaxLoss(1.0, weight, -7), nn.CrossEntropyLoss(weight, ignore_index=-7)
    torch.testing.assert_close(loss(LOSS_SCORES, INDICES), entropy(LOSS_SCORES, INDICES))


REPRS = {
    "Softmax()": fnn.Softmax(),
    "Sparsemax(dim=1)": fnn.Sparsemax(dim=1),
    "Entmax(alpha=1.5)": fnn.Entmax(),
    "Entmax(alpha=1.5, dim=1)": fnn.Entmax(1.5, 1),
    "Entmax(alpha='learned', heads=2)": fnn.Entmax("learned", heads=2),
    "Entmax(alpha=[1.5, 2.0], heads=2)": fnn.Entmax((1.5, 2.0), heads=2),
    "Entmax(alpha=tensor of shape (20, 1))": fnn.Entmax(torch.full((20, 1), 1.5)),
    "Normmax(alpha=2.0)": fnn.Normmax(),
    "Budget(k=2)": fnn.Budget(),
    "Budget(k=3.0)": fnn.Budget(nn.Parameter(torch.tensor(3.0))),
    "Pnormmax(p=1.5)": fnn.Pnormmax(),
    "Pnormmax(p=1.25, dim=0)": fnn.Pnormmax(nn.Parameter(torch.tensor(1.25)), 0),
    "Fusedmax(strength=[[0.5], [2.0]])": fnn.Fusedmax(torch.tensor([[0.5], [2.0]])),
    "Fusedmax(strength=0.1, dim=1)": fnn.Fusedmax(dim=1),
    "Oscarmax(strength=0.01)": fnn.Oscarmax(),
    "Fusedmax2d(strength=0.1)": fnn.Fusedmax2d(),
    "SparsemaxLoss()": fnn.SparsemaxLoss(),
    "SparsemaxLoss(ignore_index=0, inplace=True)": fnn.SparsemaxLoss(ignore_index=0, inplace=True),
    "EntmaxLoss(alpha=1.5, weight=[1.0, 1.0, 1.0])": fnn.EntmaxLoss(weight=torch.ones(3)),
    "EntmaxLoss(alpha='learned', reduction='sum')": fnn.EntmaxLoss("learned", reduction="sum"),
    "LinearEntmaxLoss(alpha=1.5, chunk_rows=4)": fnn.LinearEntmaxLoss(chunk_rows=4),
    "FenchelYoungLoss(omega=Shannon(gamma=1.0))": fnn.FenchelYoungLoss(fenchel.Shannon()),
}
STARTS = {
    "MultiheadAttention(\n  embed_dim=8, num_heads=2, alpha=1.5\n": fnn.MultiheadAttention(8, 2),
    "GeneralAttention(\n  query_size=2, key_size=3\n": fnn.GeneralAttention(2, 3),
    "GeneralAttention(\n  query_size=2, key_size=3, map=softmax\n": fnn.GeneralAttention(
        2, 3, fenchel.softmax
    ),
    "ContinuousAttention1d(\n  alpha=2.0\n": fnn.ContinuousAttention1d.pooled(4, BASIS),
    "ContinuousAttention1d(\n  alpha=1.5, penalty=1.0\n": fnn.ContinuousAttention1d.pooled(
        4, BASIS, alpha=1.5, penalty=1.0
    ),
}


@pytest.mark.parametrize("text", REPRS)
def test_repr_says_the_main_setting_and_what_is_not_default(text):
    assert repr(REPRS[text]) == text


@pytest.mark.parametrize("start", STARTS)
def test_repr_of_a_layer_starts_with_its_settings(start):
    assert repr(STARTS[start]).startswith(start)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fnn.SparsemaxLoss(reduction="average"), "reduction must be one of"),
        (lambda: fnn.EntmaxLoss(label_smoothing=2), "label_smoothing must be a number in"),
        (lambda: fnn.Entmax(alpha=(1.5, 1.5), heads=3), "alpha must have 3 values, one per head"),
        (lambda: fnn.Entmax(alpha="softmax"), "alpha must be a number, a tensor or"),
        (lambda: fnn.Entmax(alpha=True), "alpha must be above 0"),
        (lambda: fnn.Entmax("learned", heads=3)(SCORES), "alpha must have a shape"),
        (lambda: fnn.Entmax("learned", heads=0), "heads must be a whole number"),
        (lambda: fnn.Entmax("learned", heads="2"), "heads must be a whole number"),
        (lambda: fnn.Entmax(alpha=[]), "alpha must have at least one value"),
        (lambda: fnn.Normmax(alpha=1.0), "alpha must be above 1"),
        (lambda: fnn.Normmax(alpha=[2.0, 0.5]), "alpha must be above 1"),
        (lambda: fnn.Budget(k=-1), "k must be at least 0"),
        (lambda: fnn.Budget(k="2"), "k must be a number or a tensor"),
        (lambda: fnn.Pnormmax(p=1), "p must be above 1"),
        (lambda: fnn.Fusedmax(strength=-0.1), "strength must be at least 0"),
        (lambda: fnn.Oscarmax(strength=None), "strength must be a number or a tensor"),
        (lambda: fnn.Fusedmax2d(strength=float("inf")), "strength must be at least 0"),
        (lambda: fnn.SparsemaxLoss(weight=[1.0, 2.0]), "weight must be a torch.Tensor"),
        (lambda: fnn.LinearEntmaxLoss(chunk_rows=-1), "chunk_rows must be a whole number"),
        (lambda: fnn.FenchelYoungLoss(fenchel.Norm), "omega must be a regularizer"),
        (lambda: fnn.AdditiveAttention(4, 4, 4, map=3), "map must be a callable"),
        (
            lambda: fnn.ContinuousAttention1d.pooled(4, None),
            "basis must be a fenchel.continuous.GaussianBasis",
        ),
        (
            lambda: fnn.ContinuousAttention1d.pooled(4, BASIS, alpha=3.0),
            r"alpha must be in \[1, 2\]",
        ),
        (lambda: fnn.ContinuousAttention1d.pooled(4, BASIS, penalty=0), "penalty must be above 0"),
        (
            lambda: fnn.ContinuousAttention1d.pooled(4, BASIS, heads=1.5),
            "heads must be a whole number",
        ),
    ],
)
def test_a_broken_rule_is_named_when_a_module_is_made(make, message):
    with pytest.raises(fenchel.FenchelError, match=message):
        make()


LAYERS = {
    "multihead": fnn.MultiheadAttention(8, 2, batch_first=True),
    "learned": fnn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True, alpha="learned"),
    "general": fnn.GeneralAttention(8, 8),
    "additive": fnn.AdditiveAttention(8, 8, 4),
    "pooled": fnn.ContinuousAttention1d.pooled(8, BASIS, modes=2),
    "combined": fnn.ContinuousAttention1d.combined(fnn.GeneralAttention(8, 8), BASIS),
}


class Layer(nn.Module):
    """One of the layers, applied to a sequence; the context alone."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.layer, self.is_multihead = LAYERS[name], name in ("multihead", "learned")

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if self.is_multihead:
            return self.layer(x, x, x, key_padding_mask=~mask)[0]
        return self.layer(x[:, 0], x, mask=mask)[0]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_exported_for_batches_of_every_size(name):
    layer, batch = Layer(name).eval(), torch.export.Dim("batch")

    def inputs(size: int) -> tuple[Tensor, Tensor]:
        return torch.randn(size, 5, 8), torch.arange(5) < torch.arange(1, size + 1).view(-1, 1)

    shapes = ({0: batch}, {0: batch})
    program = torch.export.export(layer, inputs(3), dynamic_shapes=shapes, strict=False).module()
    others = inputs(4)
    torch.testing.assert_close(program(*others), layer(*others))


@pytest.mark.parametrize("name", LAYERS)
def test_an_empty_batch_passes_through_a_layer(name):
    context = Layer(name)(torch.empty(0, 5, 8), torch.empty(0, 5, dtype=torch.bool))
    assert context.shape[0] == 0
