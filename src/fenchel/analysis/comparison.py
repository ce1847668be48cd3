"""The report of several models of one task: beside each other, then one of them in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fenchel.analysis.history import read_log
from fenchel.analysis.of_run import choose, prediction_of, sections_of
from fenchel.analysis.report import Chart, Report, Section, Table
from fenchel.analysis.supports import supports
from fenchel.data import Example
from fenchel.recipes.figures import Figures
from fenchel.recipes.overrides import settings
from fenchel.recipes.running import Trained
from fenchel.search import Answer

Models = Mapping[str, tuple[Trained, Figures, Sequence[Answer]]]


def comparison(
    table: Table, models: Models, chosen: str, examples: Sequence[Example], shown: int = 6
) -> Report:
    """The page of some models, measured on the same examples; `chosen` is the one shown in full."""
    trained, figures, answers = models[chosen]
    others = [name for name in models if name != chosen]
    places = choose(examples, answers, trained.run.codec, shown)
    return Report(
        title=" and ".join(models),
        summary=f"{trained.recipe.summary}; measured on {len(examples)} examples",
        sections=[
            Section("Beside each other", tables=[table], charts=_charts(models, examples)),
            *(
                replace(section, title=f"{chosen}: {section.title.lower()}")
                for section in sections_of(trained, examples, figures, answers, shown)
            ),
            *(
                Section(
                    f"{name}: the same examples",
                    predictions=[
                        prediction_of(models[name][0], examples[k], models[name][2][k])
                        for k in places
                    ],
                )
                for name in others
            ),
        ],
        settings={key: str(value) for key, value in settings(trained.recipe).items()},
    )


def _charts(models: Models, examples: Sequence[Example]) -> list[Chart]:
    found = {
        name: supports(trained.run.model, trained.run.codec, examples)
        for name, (trained, _, _) in models.items()
    }
    logs = {name: read_log(trained.run.log_path) for name, (trained, _, _) in models.items()}
    exact = {name: log.get("exact", []) for name, log in logs.items()}
    return [
        Chart("validation: sequences that are right as a whole", "epoch", "share", exact),
        *(
            Chart(
                f"mean number of non-zeros {where}, by position in the answer",
                "position",
                "non-zeros",
                {name: each.series(part) for name, each in found.items()},
            )
            for part, where in (("attention", "in attention"), ("output", "at the output"))
        ),
    ]
