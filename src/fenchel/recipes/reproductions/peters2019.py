"""Peters, Niculae and Martins (2019), *Sparse Sequence-to-Sequence Models*."""

from __future__ import annotations

from functools import partial
from typing import Any

from fenchel.recipes.reproductions.tables import (
    COSINE_SCHEDULE,
    TEXT_SCHEDULE,
    Experiment,
    Measure,
    TimedTable,
    TrainedTable,
)

PAPER = "2019-peters"
ALPHAS = (1.0, 1.5, 2.0)
NAMES = {1.0: "softmax", 1.5: "1.5-entmax", 2.0: "sparsemax"}
# Table 1: test accuracy by (α of the loss, α of attention): mean and ensemble of three runs.
HIGH = {
    (1.0, 1.0): (93.15, 94.20), (1.0, 1.5): (92.32, 93.50), (1.0, 2.0): (90.98, 92.60),
    (1.5, 1.0): (94.36, 94.96), (1.5, 1.5): (94.44, 95.00), (1.5, 2.0): (94.05, 94.74),
    (2.0, 1.0): (94.59, 95.10), (2.0, 1.5): (94.47, 95.01), (2.0, 2.0): (94.32, 94.89),
}  # fmt: skip
MEDIUM = {
    (1.0, 1.0): (82.55, 85.68), (1.0, 1.5): (83.20, 85.63), (1.0, 2.0): (83.13, 85.65),
    (1.5, 1.0): (84.88, 86.38), (1.5, 1.5): (84.93, 86.55), (1.5, 2.0): (84.93, 86.59),
    (2.0, 1.0): (84.95, 86.41), (2.0, 1.5): (85.03, 86.61), (2.0, 2.0): (84.96, 86.47),
}  # fmt: skip
# Section 4.1: percentages of validation samples, for the best configuration in each setting.
SHARES = {
    "high": ((2.0, 1.0), {"single": 81.0, "complete": 87.0}),
    "medium": ((2.0, 1.5), {"single": 66.0, "complete": 79.0}),
}
# Tables 2 and 3, German to English on IWSLT 2017, replaced here by Multi30k.
BLEU = {1.0: 25.70, 1.5: 26.17, 2.0: 24.69}
NONZEROS = {1.0: (24.25, 17993.0), 1.5: (5.55, 16.13), 2.0: (3.75, 7.55)}
# Table 2, Japanese to English on KFTT, replaced here by small_parallel_enja.
JAPANESE_BLEU = {1.0: 20.22, 1.5: 20.55, 2.0: 18.54}
GRID = (1.0, 1.25, 1.5, 1.75, 2.0, 2.25)
# Section 4.2: target words per second on a GeForce GTX 1080; 1.33 represents "other α", by bisection.
WORDS_PER_SECOND = {1.0: 14500.0, 1.5: 13000.0, 1.33: 10500.0}
INFLECTION_SCHEDULES = {
    setting: (
        *COSINE_SCHEDULE, "batch_size=256", "learning_rate=0.002", "monitor=exact",
        f"epochs={epochs}", f"validate_every={validate_every}",
    )
    for setting, epochs, validate_every in (("medium", 100, 20), ("high", 15, 3))
}  # fmt: skip


def alphas(output: float, attention: float) -> tuple[str, ...]:
    """The overrides that set the α of the output and the α of attention."""
    maps = {1.0: ("attention_map=softmax",), 2.0: ("attention_map=sparsemax",)}
    entmax = ("attention_map=entmax", f"attention_alpha={attention}")
    return (f"output_alpha={output}", *maps.get(attention, entmax))


def _table1(setting: str, figures: dict[tuple[float, float], tuple[float, float]]) -> TrainedTable:
    best, shares = SHARES[setting]
    return TrainedTable(
        name=f"{PAPER}/table1-{setting}",
        summary=f"inflection in all languages, setting {setting}: α of the loss × α of attention",
        recipe="inflection",
        overrides=INFLECTION_SCHEDULES[setting],
        dataset="sigmorphon2018",
        options={"setting": setting},
        measures=(
            Measure("accuracy", "accuracy", "test"),
            Measure("single", "single", "dev"),
            Measure("complete", "complete", "dev"),
            Measure("certified", "certified", "dev"),
        ),
        experiments=tuple(
            Experiment(
                name=f"loss {NAMES[output]}, attention {NAMES[attention]}",
                folder=f"sigmorphon2018-{setting}/loss{output}-attention{attention}",
                overrides=alphas(output, attention),
                paper={"accuracy": average, "ensemble": ensemble}
                | (shares if (output, attention) == best else {}),
            )
            for (output, attention), (average, ensemble) in figures.items()
        ),
    )


def _translated(data: str, output: float, attention: float, **paper: float) -> Experiment:
    same = NAMES[output] if output == attention and output in NAMES else None
    return Experiment(
        name=same or f"loss α = {output}, attention α = {attention}",
        folder=f"{data}/loss{output}-attention{attention}",
        overrides=alphas(output, attention),
        paper=paper,
    )


_german_english = partial(_translated, "multi30k-de-en")
_japanese_english = partial(_translated, "small_parallel_enja-ja-en")


MULTI30K: dict[str, Any] = {
    "recipe": "translation",
    "overrides": TEXT_SCHEDULE,
    "dataset": "multi30k",
}
SUPPORTS = (
    Measure("attended", "attention_support", "dev"),
    Measure("target words", "output_support", "dev"),
)
TABLE1_MEDIUM = _table1("medium", MEDIUM)
TABLE1_HIGH = _table1("high", HIGH)
TABLE2 = TrainedTable(
    **MULTI30K,
    name=f"{PAPER}/table2",
    summary="translation, German to English: BLEU of three maps (Multi30k for IWSLT 2017)",
    measures=(Measure("bleu", "bleu"),),
    experiments=tuple(_german_english(a, a, bleu=BLEU[a]) for a in ALPHAS),
)
TABLE2_JAPANESE = TrainedTable(
    name=f"{PAPER}/table2-ja-en",
    summary="translation, Japanese to English: BLEU and nonzeros (small_parallel_enja for KFTT)",
    recipe="translation",
    overrides=TEXT_SCHEDULE,
    dataset="small_parallel_enja",
    options={"source": "ja", "target": "en"},
    measures=(Measure("bleu", "bleu"), *SUPPORTS),
    experiments=tuple(_japanese_english(a, a, bleu=JAPANESE_BLEU[a]) for a in ALPHAS),
)
TABLE3 = TrainedTable(
    **MULTI30K,
    name=f"{PAPER}/table3",
    summary="translation, German to English: words attended, words considered (Multi30k)",
    measures=SUPPORTS,
    experiments=tuple(
        _german_english(a, a, **{"attended": NONZEROS[a][0], "target words": NONZEROS[a][1]})
        for a in ALPHAS
    ),
)
FIGURE4 = TrainedTable(
    **MULTI30K,
    name=f"{PAPER}/figure4",
    summary="translation, German to English: validation accuracy on a grid of α (Multi30k)",
    measures=(Measure("token accuracy", "token_accuracy", "dev"),),
    experiments=(
        *(_german_english(1.5, a) for a in GRID),
        *(_german_english(a, 1.5) for a in GRID if a != 1.5),
    ),
)
FIGURE6 = TimedTable(
    **MULTI30K,
    name=f"{PAPER}/figure6",
    summary="translation, German to English: training speed in target words a second (Multi30k)",
    experiments=tuple(_german_english(a, a, words=words) for a, words in WORDS_PER_SECOND.items()),
)
