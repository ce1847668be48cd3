"""Recipes of sequence-to-sequence models."""

from __future__ import annotations

from dataclasses import replace

from fenchel.models.seq2seq import Seq2SeqConfig
from fenchel.models.transformer import TransformerConfig
from fenchel.tasks.sequences import DataConfig, SearchConfig, Seq2SeqTask, TransformerTask
from fenchel.training import Recipe, TrainingConfig


def inflection() -> Recipe[Seq2SeqTask]:
    """The 1.5-entmax model of Peters, Niculae and Martins (2019), section 4.1."""
    return Recipe(
        name="inflection",
        summary="a lemma and its tags to the inflected form, letter by letter",
        task=Seq2SeqTask(
            metric="accuracy",
            data=DataConfig(format="inflection", segmentation="characters"),
            model=Seq2SeqConfig(embedding_size=300, hidden_size=300),
            search=SearchConfig(width=5, max_length=60),
        ),
        training=TrainingConfig(epochs=30, batch_size=64, log_every=20),
    )


def translation() -> Recipe[Seq2SeqTask]:
    """The 1.5-entmax model of Peters, Niculae and Martins (2019), section 4.2, with fewer merges.

    The paper merges 32,000 times on 200,000 sentences or more; 8,000 suit smaller data sets, and
    `--set merges=32000` is the paper's number.
    """
    return Recipe(
        name="translation",
        summary="sentences of one language to another, in subwords",
        task=Seq2SeqTask(
            metric="bleu",
            data=DataConfig(format="parallel", segmentation="subwords", merges=8000, joint=True),
            model=Seq2SeqConfig(embedding_size=500, hidden_size=500),
            search=SearchConfig(width=5, max_length=120),
        ),
        training=TrainingConfig(epochs=20, batch_size=64),
    )


def transformer() -> Recipe[TransformerTask]:
    """The α-entmax Transformer of Correia, Niculae and Martins (2019), with fewer merges and steps.

    Size, batches and learned α are the paper's. It trains on larger data sets, merges 32,000 times and
    warms up over 20,000 steps: `--set merges=32000 --set warmup_steps=20000`. The highest learning rate
    and label smoothing, which it does not state, are usual ones.
    """
    return Recipe(
        name="transformer",
        summary="sentences of one language to another, with a Transformer whose heads learn their alpha",
        task=TransformerTask(
            metric="bleu",
            data=DataConfig(format="parallel", segmentation="subwords", merges=8000, joint=True),
            model=TransformerConfig(share_embeddings="joint"),
            search=SearchConfig(width=5, max_length=120),
        ),
        training=TrainingConfig(
            epochs=30,
            batch_size=1024,
            batch_tokens=8192,
            learning_rate=7e-4,
            beta2=0.98,
            schedule="inverse-sqrt",
            warmup_steps=4000,
            average=5,
        ),
    )


def transduction() -> Recipe[Seq2SeqTask]:
    """The model of `inflection` for pairs of strings, such as spellings and pronunciations."""
    base = inflection()
    data = replace(base.task.data, format="parallel")
    return replace(
        base,
        name="transduction",
        summary="a string to another string, letter by letter",
        task=replace(base.task, data=data, search=SearchConfig(width=5, max_length=100)),
    )


def summarization() -> Recipe[Seq2SeqTask]:
    """Sentence summarization as in Niculae and Blondel (2017), section 4.3, with sparse attention.

    The attention is 1.5-entmax; `--set attention_map=fusedmax` attends to segments of the text.
    """
    return Recipe(
        name="summarization",
        summary="a text to a headline or a short summary, in subwords",
        task=Seq2SeqTask(
            metric="rouge_l",
            data=DataConfig(format="parallel", segmentation="subwords", merges=8000, joint=True),
            model=Seq2SeqConfig(embedding_size=500, hidden_size=500),
            search=SearchConfig(width=5, max_length=50),
        ),
        training=TrainingConfig(epochs=20, batch_size=64),
    )


# For minutes on a CPU instead of hours.
SMALL = (
    "embedding_size=128",
    "hidden_size=128",
    "layers=1",
    "dropout=0.2",
    "attention=dot",
    "training.batch_size=32",
    "learning_rate=0.003",
    "schedule=cosine",
)
SMALL_TRANSFORMER = (
    "hidden_size=128",
    "heads=4",
    "layers=2",
    "feedforward_size=512",
    "dropout=0.2",
    "merges=2000",
    "batch_tokens=2048",
    "learning_rate=0.004",
    "warmup_steps=600",
)
