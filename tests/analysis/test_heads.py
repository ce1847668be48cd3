"""The table of heads: against hand computations, streaming, in memory that does not grow."""

from __future__ import annotations

import gc
import json
import math
import pickle

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import fenchel
from fenchel.analysis import Head, Sentences, Tokens, heads
from fenchel.errors import FenchelError
from tests.analysis.given import Given, GivenPair, random_weights
from tests.implementations import needs_gpu

# Two sentences of four and three tokens, two heads. The first head is certain, the second is not.
FIRST = torch.tensor(
    [[[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]],
     [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0]]]
)  # fmt: skip
SECOND = torch.tensor(
    [[[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25], [0.5, 0.0, 0.5, 0.0], [0.5, 0.0, 0.0, 0.5]],
     [[0.5, 0.0, 0.5, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [9.0, 9.0, 9.0, 9.0]]]
)  # fmt: skip
WEIGHTS = torch.stack([FIRST, SECOND], 1)
PADDING = torch.tensor([[False] * 4, [False] * 3 + [True]])
STRINGS = [["▁what", "▁low", "est", "▁?"], ["▁a", "▁low", "▁?"]]
WORDS = [[0, 1, 1, 2], [0, 1, 2]]


def assert_same(found: list[dict], expected: list[dict]) -> None:
    """Equal records, up to the rounding of sums."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            is_number = isinstance(value, float)
            assert ours[name] == (pytest.approx(value, abs=1e-6) if is_number else value), name


def test_means_of_two_sentences_by_hand():
    inputs = (WEIGHTS, PADDING)
    table = heads(Given(2), [Sentences(inputs, Tokens(STRINGS, WORDS))])
    first, second = table.records()
    assert first["kind"] == "self"
    assert (first["layer"], first["head"], first["module"]) == (0, 0, "attn")
    # Seven queries; the first head has one key of four (or of three) each.
    assert first["density"] == pytest.approx((4 / 4 + 3 / 3) / 7)
    assert second["density"] == pytest.approx((1 + 1 + 0.5 + 0.5 + 3 * 2 / 3) / 7)
    assert first["uncertainty"] == 0
    halves = [1, 1, 0.5, 0.5, *[math.log(2) / math.log(3)] * 3]
    assert second["uncertainty"] == pytest.approx(sum(halves) / 7)
    # Offset −1 exists for three queries of the first sentence and two of the second.
    assert first["previous_token"] == 1.0
    assert first["current_token"] == 0.0
    assert first["next_token"] == pytest.approx((1 + 0 + 0 + 1 + 0) / 5)
    assert second["previous_token"] == pytest.approx((0.25 + 0 + 0 + 0.5 + 0.5) / 5)
    assert second["current_token"] == pytest.approx((0.25 * 2 + 0.5 * 2 + 0.5 * 3) / 7)
    # Words: "what", "low est", "?" and "a", "low", "?".
    assert first["subword_merging"] == pytest.approx((0 + 1 + 0 + 0 + 0 + 0) / 6)
    assert first["split_word_merging"] == 1.0
    assert second["subword_merging"] == pytest.approx((0.25 + 0.25 + 0.5 + 0.5 + 0.5 + 0.5) / 6)
    assert second["split_word_merging"] == 0.25
    assert first["same_word"] == pytest.approx((0 + 0 + 1 + 0 + 0 + 0 + 0) / 7)
    # The only interrogative word is the first token of the first sentence.
    assert (first["interrogation"], second["interrogation"]) == (0.0, 0.25)
    assert (first["role"], first["confidence"]) == ("previous_token", 1.0)
    assert (second["role"], second["confidence"]) == (None, None)


def bits(*probabilities: float) -> float:
    return -sum(p * math.log2(p) for p in probabilities)


def test_diversity_by_hand():
    (layer,) = heads(Given(2), [(WEIGHTS, PADDING)]).layers()
    four_keys = [  # entropy of the mean of the heads, minus the mean of their entropies
        bits(1 / 8, 5 / 8, 1 / 8, 1 / 8) - (0 + 2) / 2,
        bits(5 / 8, 1 / 8, 1 / 8, 1 / 8) - (0 + 2) / 2,
        bits(1 / 4, 1 / 2, 1 / 4) - (0 + 1) / 2,
        bits(1 / 4, 1 / 2, 1 / 4) - (0 + 1) / 2,
    ]
    three_keys = [
        bits(1 / 4, 1 / 2, 1 / 4) - (0 + 1) / 2,
        bits(3 / 4, 1 / 4) - (0 + 1) / 2,
        bits(3 / 4, 1 / 4) - (0 + 1) / 2,
    ]
    expected = [each / math.log2(4) for each in four_keys]
    expected += [each / math.log2(3) for each in three_keys]
    assert layer["diversity"] == pytest.approx(sum(expected) / 7, abs=1e-6)
    assert (layer["heads"], layer["queries"]) == (2, 7)


def test_three_kinds_of_attention_with_padding_on_both_sides():
    """Context attention has no mask for its queries: the tokens of the target say where they end."""
    encoder, decoder = random_weights(2, 2, 4, 4), random_weights(2, 2, 3, 3)
    context = random_weights(2, 2, 3, 4)
    padded = encoder.clone(), decoder.clone(), context.clone()
    padded[0][1, :, 3:], padded[1][1, :, 2:], padded[2][1, :, 2:] = 9.0, 9.0, 9.0
    source, target = Tokens(lengths=[4, 3]), Tokens(lengths=[3, 2])
    found = heads(GivenPair(2), [Sentences((*padded, PADDING), source, target)])
    assert [layer["kind"] for layer in found.layers()] == ["encoder", "context", "decoder"]
    alone = [
        (encoder[:1], decoder[:1], context[:1]),
        (encoder[1:, :, :3, :3], decoder[1:, :, :2, :2], context[1:, :, :2, :3]),
    ]
    expected = heads(GivenPair(2), alone)
    assert_same(found.layers(), expected.layers())
    assert_same(found.records(), expected.records())


def test_batches_do_not_matter():
    """One by one, all at once, and padded to the left or to the right."""
    whole = heads(Given(2), [Sentences((WEIGHTS, PADDING), Tokens(STRINGS, WORDS), numbers=[5, 3])])
    shifted = WEIGHTS.roll((1, 1), (2, 3))
    left = torch.where(torch.arange(2).view(2, 1, 1, 1) == 1, shifted, WEIGHTS)
    source = [Tokens(STRINGS[k : k + 1], WORDS[k : k + 1]) for k in (0, 1)]
    cut = WEIGHTS[1:, :, :3, :3]
    mirrored = torch.stack([PADDING[0], PADDING[1].flip(0)])
    others = [
        [Sentences((WEIGHTS[k : k + 1], PADDING[k : k + 1]), source[k]) for k in (0, 1)],
        [Sentences((left, mirrored), Tokens(STRINGS, WORDS))],
        [Sentences((WEIGHTS[:1],), source[0]), Sentences((cut,), source[1])],
    ]
    for batches in others:
        table = heads(Given(2), batches)
        assert_same(table.records(), whole.records())
        assert_same(table.layers(), whole.layers())


def test_lengths_say_where_padding_is_if_the_model_has_no_mask():
    with_mask = heads(Given(2), [(WEIGHTS, PADDING)])
    with_lengths = heads(Given(2), [Sentences((WEIGHTS,), Tokens(lengths=[4, 3]))])
    assert_same(with_lengths.records(), with_mask.records())


def test_causal_attention():
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    weights = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.0]])
    table = heads(Given(1), [(weights.view(1, 1, 4, 4), None, future)])
    (head,) = table.records()
    assert head["density"] == pytest.approx((1 + 1 + 1 / 3 + 1 / 4) / 4)
    assert head["uncertainty"] == pytest.approx(1 / 3)  # the first query sees a single key
    assert head["previous_token"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert head["next_token"] is None
    assert table.layers()[0]["diversity"] == 0


def test_a_head_of_the_next_token_and_one_that_merges():
    """The role of merging needs words of several tokens: a head of offset 0 has 1 on all others."""
    words = Tokens(words=[[0, 1, 2, 3, 4, 5, 6, 7, 8, 8]])
    offset = torch.eye(10)
    merges = offset.clone()
    merges[8, 8:] = merges[9, 8:] = 0.5
    after = torch.eye(10).roll(1, 1)
    weights = torch.stack([offset, merges, after]).unsqueeze(0)
    table = heads(Given(3), [Sentences((weights,), words)])
    roles = [(head["role"], head["subword_merging"]) for head in table.records()]
    assert [role for role, _ in roles] == ["current_token", "subword_merging", "next_token"]
    assert [score for _, score in roles] == pytest.approx([8 / 9, 8.5 / 9, 1 / 9])
    by_role = {each["role"]: each for each in table.roles()}
    assert by_role["current_token"]["heads"] == 2
    assert by_role["current_token"]["median_confidence"] == pytest.approx((1 + 0.9) / 2)
    assert by_role["subword_merging"]["heads"] == 1
    assert by_role["previous_token"]["median_confidence"] is None


def test_an_interrogation_head():
    """Only interrogative words in a sentence with a question mark count."""
    strings = [["was", "ist", "das", "?"], ["das", "was", "ist", "."]]
    weights = torch.zeros(2, 1, 4, 4)
    weights[..., 3] = 0.75
    weights[..., 0] = 0.25
    batch = [Sentences((weights,), strings)]
    assert heads(Given(1), batch, interrogatives="de").records()[0]["interrogation"] == 0.75
    assert heads(Given(1), batch, interrogatives="en").records()[0]["interrogation"] is None
    assert heads(Given(1), batch, interrogatives=["Das"]).records()[0]["interrogation"] == 0.75
    with pytest.raises(FenchelError, match="unknown language of interrogative words 'klingon'"):
        heads(Given(1), batch, interrogatives="klingon")


def test_the_sentences_of_which_a_head_is_least_sure():
    sizes = torch.linspace(0, 1, 40)[torch.randperm(40)]  # how even the weights are
    weights = torch.zeros(40, 2, 6, 6)
    weights[..., 0] = 1 - sizes.view(40, 1, 1) / 2
    weights[..., 1] = sizes.view(40, 1, 1) / 2
    weights[:, 1] = weights[:, 0].flip(0)
    batches = [Sentences((part,), [list("abcdef")] * 8) for part in weights.split(8)]
    table = heads(Given(2), batches, unsure=3)
    least = sizes.argsort(descending=True)[:3].tolist()
    assert [each.number for each in table.unsure[Head("self", 0, 0)]] == least
    assert [each.number for each in table.unsure[Head("self", 0, 1)]] == [39 - k for k in least]
    worst = table.unsure[Head("self", 0, 0)][0]
    assert worst.uncertainty == pytest.approx(math.log(2) / math.log(6))
    assert worst.density == pytest.approx(1 / 3)
    assert worst.weights.to_dense().allclose(weights[least[0], 0])
    assert list(worst.keys) == list("abcdef")
    assert heads(Given(2), batches, unsure=0).unsure[Head("self", 0, 0)] == []


def test_short_sentences_are_no_sentences_of_which_a_head_is_least_sure():
    table = heads(Given(1), [torch.full((1, 1, 2, 2), 0.5)])
    assert table.unsure[Head("self", 0, 0)] == []
    assert table.records()[0]["uncertainty"] == 1


def test_the_attention_of_examples_is_sparse():
    batch = Sentences((WEIGHTS, PADDING), Tokens(STRINGS, WORDS))
    table = heads(Given(2), [batch], examples=[1])
    (sentence,) = table.examples
    assert (sentence.number, list(sentence.source), sentence.target) == (1, STRINGS[1], None)
    assert sentence.rows("self", 0, 0) == [{1: 1.0}, {0: 1.0}, {1: 1.0}]
    assert sentence.rows("self", 0, 1) == [{0: 0.5, 2: 0.5}, {0: 0.5, 1: 0.5}, {1: 0.5, 2: 0.5}]
    assert all(weights.layout == torch.sparse_csr for weights in sentence.weights.values())
    assert len(heads(Given(2), [batch], examples=5).examples) == 2


def test_examples_are_found_by_their_number_in_the_data():
    batches = [Sentences((WEIGHTS, PADDING), STRINGS, numbers=[7, 2])]
    assert [each.number for each in heads(Given(2), batches, examples=3).examples] == [2]


def test_alpha_and_its_spread():
    tables = [
        heads(Given(2, alpha), [WEIGHTS[:1]]) for alpha in (None, 1.5, torch.tensor([1.04, 2.0]))
    ]
    assert [[head["alpha"] for head in table.records()] for table in tables[:2]] == [
        [None] * 2,
        [1.5] * 2,
    ]
    assert [head["alpha"] for head in tables[2].records()] == pytest.approx([1.04, 2.0])
    assert tables[0].alpha_histogram() is None
    histogram = tables[2].alpha_histogram()
    assert histogram["counts"] == {"self": [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]}
    assert histogram["edges"][0] == 1
    assert histogram["edges"][-1] == 2


def test_the_histogram_of_densities_has_a_count_per_head_and_sentence():
    histogram = heads(Given(2), [(WEIGHTS, PADDING)]).density_histogram()
    counts = histogram["counts"]["self"]
    assert sum(counts) == 4
    # One key of four, one of three, 3/4 on average, two of three; bins are 0.05 wide.
    assert [place for place, count in enumerate(counts) if count] == [5, 6, 13, 15]
    dense = heads(Given(2), [torch.full((3, 2, 4, 4), 0.25)]).density_histogram()
    assert dense["counts"]["self"] == [0] * 19 + [6]


def test_our_layers_and_those_of_torch_with_softmax_are_the_same():
    ours = fenchel.nn.MultiheadAttention(16, 4, alpha=1.0, batch_first=True)
    theirs = nn.MultiheadAttention(16, 4, batch_first=True)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(8, 6, 16)

    def records(model):
        table = heads(model, [x], forward=lambda model, x: model(x, x, x))
        return [{**head, "alpha": None, "module": ""} for head in table.records()]

    assert_same(records(ours), records(theirs))


def test_sparse_heads_have_a_lower_density_and_are_more_diverse():
    x = 2 * torch.randn(8, 12, 16)
    tables = {}
    for alpha in (1.0, 1.5, 2.0):
        torch.manual_seed(0)
        layer = fenchel.nn.MultiheadAttention(16, 4, alpha=alpha, batch_first=True)
        (tables[alpha],) = heads(layer, [x], forward=lambda model, x: model(x, x, x)).layers()
    densities = [tables[alpha]["density"] for alpha in (1.0, 1.5, 2.0)]
    assert densities == sorted(densities, reverse=True)
    assert densities[0] == 1
    diversities = [tables[alpha]["diversity"] for alpha in (1.0, 1.5, 2.0)]
    assert diversities == sorted(diversities)


def test_a_model_is_called_with_what_a_batch_is():
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(2, 5, 8)
    named = {"query": x, "key": x, "value": x}
    tables = [heads(layer, [batch]) for batch in ((x, x, x), [x, x, x], named, Sentences(named))]
    for table in tables[1:]:
        assert table.records() == tables[0].records()
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert heads(encoder, [x]).sentences == 2


def test_the_model_is_left_as_it_was():
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    model.encoder.eval()
    before = [module.training for module in model.modules()]
    modes = []
    x = torch.randn(2, 5, 8)
    heads(model, [x], forward=lambda model, x: modes.append(model.training) or model(x, x))
    assert modes == [False]
    assert [module.training for module in model.modules()] == before

    def fail(model, x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        heads(model, [x], forward=fail)
    assert [module.training for module in model.modules()] == before


def test_progress_counts_sentences():
    counts = []
    heads(Given(2), [(WEIGHTS, PADDING), (WEIGHTS[:1],)], progress=counts.append)
    assert counts == [2, 1]


def test_records_and_json_are_plain_values():
    batch = Sentences((WEIGHTS, PADDING), Tokens(STRINGS, WORDS))
    table = heads(Given(2, torch.tensor([1.25, 1.5])), [batch], examples=1, unsure=1)
    for record in table.records():
        assert all(isinstance(value, str | int | float | None) for value in record.values())
    stored = json.loads(json.dumps(table.to_json(), allow_nan=False))
    assert stored["heads"] == table.records()
    names = ["model", "sentences", "threshold", "heads", "layers", "roles", "alpha", "density"]
    assert list(stored) == [*names, "examples", "unsure"]
    assert stored["examples"][0]["heads"][0]["keys"] == [[1], [0], [1], [2]]
    assert stored["examples"][0]["heads"][0]["weights"] == [[1.0]] * 4
    text = str(table)
    assert "previous token" in text
    assert "1.25–1.50" in text


def live_bytes() -> int:
    """The memory of all tensors."""
    gc.collect()
    tensors = [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)]
    return sum(each.nbytes for each in tensors if each.layout == torch.strided)


def test_memory_does_not_grow_with_the_number_of_sentences():
    """From 100 to 10,000 sentences, with all measures, in batches of 50.

    The weights are dense, so that all sentences of which a head is unsure take the same memory.
    """
    model, tokens = Given(2, 1.5), Tokens([["a"] * 6] * 50, [[0, 0, 1, 2, 3, 4]] * 50)
    memory, stored = {}, {}
    for total in (100, 10_000):
        done = 0

        def batches(total=total):
            for _ in range(total // 50):
                yield Sentences((torch.rand(50, 2, 6, 6).softmax(-1),), tokens)

        def watch(count, total=total):
            nonlocal done
            done += count
            if done in (100, 10_000):
                memory[total] = live_bytes()

        table = heads(model, batches(), progress=watch, examples=2)
        assert table.sentences == total == done
        stored[total] = len(pickle.dumps((table._layers, table.examples)))
        del table
    assert memory[10_000] == memory[100]
    assert stored[10_000] <= 1.01 * stored[100]


def test_the_number_of_operations_does_not_depend_on_the_number_of_heads():
    """So a GPU is asked once for all heads."""

    class Count(TorchDispatchMode):
        operations = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.operations += 1
            return function(*args, **(kwargs or {}))

    counts = []
    for number in (2, 16):
        batch = Sentences(
            (random_weights(3, number, 6, 6),), Tokens([["a"] * 6] * 3, [[0] * 6] * 3)
        )
        with Count() as count:
            heads(Given(number), [batch], unsure=0)
        counts.append(count.operations)
    assert counts[0] == counts[1] > 50


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "batches must have at least one sentence, got none"),
        (torch.ones(1, 1, 2, 2), r"batches must be an iterable of batches such as \[batch\], got Tensor"),
        (3, r"batches must be an iterable .* got int"),
        ([Sentences((WEIGHTS, PADDING), [["a"] * 4, ["b"] * 4])], "4 tokens of sentence 1, and 3 pos"),
        ([Sentences((WEIGHTS,), [["a"] * 5, ["b"] * 4])], "got 5 tokens of sentence 0, and 4 positions"),
        ([Sentences((WEIGHTS,), [["a"] * 3, ["b"] * 2])], "got 3 tokens of sentence 0, and 4 positions"),
        ([Sentences((WEIGHTS,), [["a"] * 4])], "got 1 sentences with tokens and 2 in attn"),
        ([WEIGHTS * float("nan")], "the attention weights of attn must be finite, got nan"),
    ],
)  # fmt: skip
def test_bad_batches_are_errors(batches, message):
    with pytest.raises(FenchelError, match=message):
        heads(Given(2), batches)


def test_bad_arguments_are_errors():
    with pytest.raises(FenchelError, match="got Linear"):
        heads(nn.Linear(2, 2), [torch.ones(1, 2)])
    with pytest.raises(FenchelError, match="forward must use the attention of Given"):
        heads(Given(2), [WEIGHTS], forward=lambda model, x: x)
    with pytest.raises(FenchelError, match="unsure must be a whole number of at least 0, got -1"):
        heads(Given(2), [WEIGHTS], unsure=-1)


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=needs_gpu)])
def test_a_gpu_gives_the_same_table(device):
    layer, x = (
        fenchel.nn.MultiheadAttention(16, 4, alpha=1.5, batch_first=True),
        torch.randn(8, 6, 16),
    )

    def records(device):
        forward = lambda model, x: model(x, x, x)  # noqa: E731
        table = heads(layer.to(device), [Sentences(x.to(device), [["a"] * 6] * 8)], forward=forward)
        return table.records()

    assert_same(records(device), records("cpu"))
