"""A batch is what a loop over its examples would make; an epoch has every example once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fenchel import FenchelError
from fenchel.data import LengthBuckets
from fenchel.data.ragged import Ragged
from fenchel.data.vocabulary import EOS, PAD
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.encoded import SequencePairs
from fenchel.tasks.sequences.example import Example
from tests.implementations import needs_gpu

words = st.text(alphabet="abc", min_size=1, max_size=9)
examples = st.lists(st.builds(Example, words, words), min_size=1, max_size=12)
shapes = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=4, max_size=150)


def encoded(lengths):
    rows = [[[5] * length for length in side] for side in zip(*lengths, strict=True)]
    return SequencePairs(Ragged(rows[0]), Ragged(rows[1]))


@given(examples, st.data())
def test_a_batch_is_its_examples_padded(data_set, data):
    codec = Codec.fit(data_set)
    data_encoded = SequencePairs.of(data_set, codec)
    index = data.draw(st.lists(st.integers(0, len(data_set) - 1), min_size=1, max_size=20))
    batch = data_encoded.batch(torch.tensor(index))
    sources = [codec.encode_source(data_set[place]) for place in index]
    targets = [codec.encode_target(data_set[place]) for place in index]
    for padded, rows in ((batch.source, sources), (batch.target, targets)):
        width = max(map(len, rows))
        assert padded.tolist() == [row + [PAD] * (width - len(row)) for row in rows]
        assert padded.dtype == torch.int64
    assert batch.source_lengths.tolist() == [len(row) for row in sources]
    assert batch.index.tolist() == index
    assert all(torch.equal(a, b) for a, b in zip(batch, data_encoded.batch(index), strict=True))


def test_examples_without_targets_make_batches_too():
    data = SequencePairs.of([Example("ab"), Example("b")], Codec.fit([Example("ab", "c")]))
    batch = data.batch([1, 0])
    assert batch.target.shape == (2, 0)
    assert batch.source.shape == (2, 2)


def test_batches_are_on_the_cpu_whatever_the_default_device():
    with torch.device("meta"):
        data = SequencePairs.of([Example("ab", "c")], Codec.fit([Example("ab", "c")]))
        batch = data.batch([0])
        (index,) = LengthBuckets(data, 2).batches()
    assert {tensor.device.type for tensor in (*batch, index)} == {"cpu"}


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=needs_gpu)])
def test_a_data_set_on_the_gpu_gives_the_same_batches_there(device):
    data = encoded([(1 + place % 7, 1 + place % 5) for place in range(50)])
    index = torch.randperm(50)[:20]
    here, there = data.batch(index), data.to(device).batch(index)
    assert [tensor.device.type for tensor in there] == ["cuda", "cpu", "cuda", "cpu"]
    assert all(torch.equal(a, b.cpu()) for a, b in zip(here, there, strict=True))


def test_a_target_ends_and_nothing_else_does():
    codec = Codec.fit([Example("ab", "ba")])
    batch = SequencePairs.of([Example("ab", "b"), Example("a", "ba")], codec).batch([0, 1])
    assert (batch.target == EOS).sum(1).tolist() == [1, 1]


def test_what_makes_no_batch_is_said():
    codec = Codec.fit([Example("ab", "c")])
    with pytest.raises(
        FenchelError, match=r"source must have at least one symbol, got '' \(number 2\)"
    ):
        SequencePairs.of([Example("a"), Example("")], codec)
    with pytest.raises(FenchelError, match=r"must have a target, got none for 'b' \(number 2\)"):
        SequencePairs.of([Example("a", "c"), Example("b")], codec)


options = st.fixed_dictionaries(
    {
        "batch_size": st.integers(1, 40),
        "batch_tokens": st.none() | st.integers(1, 400),
        "seed": st.integers(0, 3),
        "shuffle": st.booleans(),
        "pool": st.integers(1, 4),
    }
)


@given(shapes, options, st.integers(0, 3), st.integers(1, 4))
def test_every_example_is_in_one_batch_of_one_process_an_epoch(lengths, option, epoch, world):
    data = encoded(lengths)
    parts = [LengthBuckets(data, rank=rank, world=world, **option) for rank in range(world)]
    batches = [part.batches(epoch) for part in parts]
    assert len({len(part) for part in batches}) == 1
    places = torch.cat([batch for part in batches for batch in part])
    assert sorted(places.tolist()) == list(range(len(lengths)))
    for batch in (batch for part in batches for batch in part):
        if world > 1 and len(batch) == 2:  # may be two single examples that were joined
            continue
        assert 1 <= len(batch) <= option["batch_size"]
        widths = np.array(lengths)[batch.numpy()].max(axis=0)
        tokens = len(batch) * int(widths.sum())
        assert len(batch) == 1 or tokens <= (option["batch_tokens"] or tokens)


@given(shapes, options, st.integers(0, 3))
def test_the_order_is_that_of_seed_and_epoch_alone(lengths, option, epoch):
    data = encoded(lengths)
    once, twice = (LengthBuckets(data, **option) for _ in range(2))
    once.batches(epoch + 1)
    first, second = once.batches(epoch), twice.batches(epoch)
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in second]


def test_epochs_and_seeds_differ():
    data = encoded([(1 + place % 7, 1 + place % 5) for place in range(200)])
    orders = {
        tuple(torch.cat(LengthBuckets(data, 8, seed=seed).batches(epoch)).tolist())
        for seed in range(3)
        for epoch in range(3)
    }
    assert len(orders) == 9


def test_batches_of_similar_lengths_waste_little():
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 60, (4000, 1)).repeat(2, axis=1)
    batches = LengthBuckets(encoded(lengths.tolist()), 32).batches(0)
    padded = sum(len(batch) * lengths[batch.numpy()].max() for batch in batches)
    assert lengths[:, 0].sum() / padded > 0.95


def test_batches_of_one_step_are_of_similar_length():
    lengths = [(length, length) for length in range(1, 161)]
    first, second = (
        LengthBuckets(encoded(lengths), 8, rank=rank, world=2).batches(0) for rank in (0, 1)
    )
    gaps = [
        abs(int(a.float().mean() - b.float().mean())) for a, b in zip(first, second, strict=True)
    ]
    assert max(gaps) == 8


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"batch_size": 2, "batch_tokens": 0}, "batch_tokens must be a whole number of at least 1"),
        ({"batch_size": 2, "seed": -1}, "seed must be a whole number of at least 0"),
        ({"batch_size": 2, "rank": 2, "world": 2}, "rank must be from 0 to 1, got 2"),
        ({"batch_size": 2, "world": 4}, "require at least 4 examples, got 3"),
    ],
)
def test_settings_that_make_no_batches_are_refused(option, message):
    with pytest.raises(FenchelError, match=message):
        LengthBuckets(encoded([(1, 1)] * 3), **option)
