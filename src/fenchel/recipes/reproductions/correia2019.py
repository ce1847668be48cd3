"""Correia, Niculae and Martins (2019), *Adaptively Sparse Transformers*."""

from __future__ import annotations

from functools import partial
from typing import Any

from fenchel.recipes.reproductions.tables import (
    Experiment,
    HeadsTable,
    Measure,
    TimedTable,
    TrainedTable,
)
from fenchel.recipes.reproductions.torch_transformer import TorchTransformer

PAPER = "2019-correia"
# A model that two CPU cores train in half an hour. The paper's is `--set layers=6 --set hidden_size=512
# --set feedforward_size=2048 --set merges=32000 --set batch_tokens=8192 --set warmup_steps=20000`.
SMALL = (
    "layers=3", "heads=8", "hidden_size=128", "feedforward_size=512", "dropout=0.1", "merges=4000",
    "batch_tokens=2048", "learning_rate=0.003", "warmup_steps=1000", "epochs=10", "max_length=80",
)  # fmt: skip
MAPS = {
    "softmax": ("attention_map=softmax",),
    "1.5-entmax": ("attention_alpha=1.5",),
    "α-entmax": ("attention_alpha=learned", "alpha_start=random"),
}
# Table 1: tokenized BLEU on IWSLT 2017 DE-EN and KFTT JA-EN.
BLEU = {"softmax": 29.79, "1.5-entmax": 29.83, "α-entmax": 29.90}
JAPANESE_BLEU = {"softmax": 21.57, "1.5-entmax": 22.13, "α-entmax": 21.74}
# Section 4: tokens per second relative to softmax.
SPEED = {"softmax": 1.0, "1.5-entmax": 0.90, "α-entmax": 0.75}
# Section 5.2: the numbers of heads and, in them, the weight that makes their role; WMT 2014 EN-DE.
HEADS = {
    "softmax": {
        "offset −1 heads": 3,
        "offset −1 confidence": 0.935,
        "offset +1 heads": 1,
        "merging heads": 0,
        "interrogation highest": 0.985,
    },
    "1.5-entmax": {
        "offset −1 heads": 3,
        "offset −1 confidence": 0.944,
        "offset +1 heads": 1,
        "merging heads": 2,
        "merging highest": 0.856,
        "interrogation highest": 0.970,
    },
    "α-entmax": {
        "offset −1 heads": 4,
        "offset −1 confidence": 0.959,
        "offset +1 heads": 1,
        "merging heads": 2,
        "merging highest": 0.898,
        "interrogation highest": 0.995,
    },
}


def _translated(data: str, name: str, **paper: float) -> Experiment:
    folder = f"{data}/transformer-{name.replace('α', 'alpha')}"
    return Experiment(name, folder, MAPS[name], paper)


_german_english = partial(_translated, "multi30k-de-en")
_japanese_english = partial(_translated, "small_parallel_enja-ja-en")

MULTI30K: dict[str, Any] = {"recipe": "transformer", "overrides": SMALL, "dataset": "multi30k"}
SMALL_PARALLEL_ENJA: dict[str, Any] = {
    "recipe": "transformer",
    "overrides": SMALL,
    "dataset": "small_parallel_enja",
    "options": {"source": "ja", "target": "en"},
}
TABLE1 = TrainedTable(
    **MULTI30K,
    name=f"{PAPER}/table1",
    summary="Transformers, German to English: BLEU of three kinds of attention (Multi30k for IWSLT 2017)",
    measures=(Measure("bleu", "bleu"),),
    experiments=tuple(_german_english(name, bleu=BLEU[name]) for name in MAPS),
)
TABLE1_JAPANESE = TrainedTable(
    **SMALL_PARALLEL_ENJA,
    name=f"{PAPER}/table1-ja-en",
    summary="Transformers, Japanese to English: BLEU (small_parallel_enja for KFTT)",
    measures=(Measure("bleu", "bleu"),),
    experiments=tuple(_japanese_english(name, bleu=JAPANESE_BLEU[name]) for name in MAPS),
)
FIGURES = HeadsTable(
    **MULTI30K,
    name=f"{PAPER}/figures",
    summary="Transformers, German to English: what their attention heads do (figures 2–10, Multi30k)",
    interrogatives="de",
    experiments=tuple(_german_english(name, **HEADS[name]) for name in MAPS),
)
FIGURES_JAPANESE = HeadsTable(
    **SMALL_PARALLEL_ENJA,
    name=f"{PAPER}/figures-ja-en",
    summary="Transformers, Japanese to English: what their attention heads do (figures 11–14)",
    interrogatives="ja",
    experiments=tuple(_japanese_english(name) for name in MAPS),
)
SPEEDS = TimedTable(
    **MULTI30K,
    name=f"{PAPER}/table-speed",
    summary="Transformers, German to English: training speed relative to softmax (Multi30k)",
    experiments=tuple(_german_english(name, speed=SPEED[name]) for name in MAPS),
    baselines={"torch.nn.Transformer": TorchTransformer},
)
