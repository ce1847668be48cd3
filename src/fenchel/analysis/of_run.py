"""The report of a run: its figures, its training, its supports, and some of its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from fenchel.analysis.figures import explained
from fenchel.analysis.history import history_charts, read_log
from fenchel.analysis.looks import look
from fenchel.analysis.report import Chart, Prediction, Report, Section, Table
from fenchel.analysis.supports import supports
from fenchel.analysis.wording import SENTENCES, asked, proof
from fenchel.data import Codec, Example
from fenchel.recipes.figures import Figures, figures_of
from fenchel.recipes.overrides import settings
from fenchel.recipes.running import Trained
from fenchel.search import Answer, Lattice

LONGEST = 60  # symbols of a source that still make a readable picture


def report_of(
    trained: Trained,
    examples: Sequence[Example],
    split: str,
    *,
    shown: int = 6,
    progress: Callable[[int], object] | None = None,
) -> Report:
    """All that a page can say about a run, measured on some examples."""
    figures, answers = figures_of(trained, examples, progress=progress)
    recipe = trained.recipe
    return Report(
        title=f"{recipe.name}: {trained.run.path.resolve().name}",
        summary=f"{recipe.summary}; measured on {len(examples)} examples ({split})",
        sections=sections_of(trained, examples, figures, answers, shown),
        settings={key: str(value) for key, value in settings(recipe).items()},
    )


def sections_of(
    trained: Trained,
    examples: Sequence[Example],
    figures: Figures,
    answers: Sequence[Answer],
    shown: int,
) -> list[Section]:
    """The parts of a run's report."""
    run = trained.run
    found = supports(run.model, run.codec, examples)
    by_position = Chart(
        "mean number of non-zeros by position in the answer",
        "position",
        "non-zeros",
        {name: found.series(name) for name in ("attention", "output")},
    )
    chosen = choose(examples, answers, run.codec, shown)
    text = "Every answer of non-zero probability that the search found, and where the model looked."
    return [
        Section(
            "Figures",
            str(figures.get("signature", "")),
            tables=[
                _figures(figures, trained.recipe.metric),
                _counts(answers),
                *_groups(figures),
            ],
        ),
        Section("Training", charts=history_charts(read_log(run.log_path))),
        Section("Supports", charts=[by_position]),
        Section(
            "Examples",
            text if chosen else "",
            predictions=[prediction_of(trained, examples[k], answers[k]) for k in chosen],
        ),
    ]


def choose(
    examples: Sequence[Example], answers: Sequence[Answer], codec: Codec, count: int
) -> list[int]:
    """The places of examples with several answers, with a wrong one, with a clear one, in turns.

    They are of all languages, as far as they reach, and among those whose attention makes a readable
    picture, if there are any.
    """
    kinds: dict[str, list[int]] = {"several": [], "wrong": [], "clear": []}
    lengths = [len(codec.source_symbols(example)) for example in examples]
    some_are_short = min(lengths, default=0) <= LONGEST
    for place, (example, answer) in enumerate(zip(examples, answers, strict=True)):
        if some_are_short and lengths[place] > LONGEST:
            continue
        right = codec.decode(answer.best.tokens) == _target(example, codec)
        several = answer.complete and len(answer.hypotheses) > 1
        kinds["several" if several else "clear" if right else "wrong"].append(place)
    seen: Counter[str] = Counter()
    chosen: list[int] = []
    turns = cycle(kinds.values())
    while len(chosen) < count and any(kinds.values()):
        if some := next(turns):
            place = min(some, key=lambda place: (seen[examples[place].group], place))
            some.remove(place)
            seen[examples[place].group] += 1
            chosen.append(place)
    return sorted(chosen)


def prediction_of(trained: Trained, example: Example, answer: Answer) -> Prediction:
    """An example as the report shows it."""
    codec = trained.run.codec
    seen = look(trained.run.model, codec, example, answer.best.tokens)
    readable = len(seen.source) <= LONGEST
    return Prediction(
        source=asked(example, codec),
        target=_target(example, codec),
        best=codec.decode(answer.best.tokens),
        lattice=Lattice.of(answer),
        certificate=SENTENCES[proof(answer)],
        symbols=codec.target_symbol,
        separator=codec.separator,
        source_symbols=seen.source,
        target_symbols=seen.target,
        attention=seen.weights if readable else (),
    )


def _target(example: Example, codec: Codec) -> str | None:
    """The right answer, spelled as the model does."""
    return None if example.target is None else codec.normalized(example.target)


def _figures(figures: Figures, metric: str) -> Table:
    columns = ["figure", "value", "meaning"]
    return Table("what was measured", columns, explained(figures, metric))


def _groups(figures: Figures) -> list[Table]:
    groups: dict[str, Any] = figures.get("groups", {})
    rows = list(groups.items())
    return [Table("accuracy by language", ["language", "accuracy"], rows)] if len(rows) > 1 else []


def _counts(answers: Sequence[Answer]) -> Table:
    """How many answers have non-zero probability, where all of them were found."""
    counts = Counter(len(answer.hypotheses) for answer in answers if answer.complete)
    rows = [(str(count), counts[count]) for count in sorted(counts)]
    rows.append(("more than the search has kept", len(answers) - sum(counts.values())))
    return Table("answers of non-zero probability", ["answers", "examples"], rows)
