"""Reports of runs, and of several runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fenchel.analysis.report_heads import model_heads
from fenchel.analysis.run_heads import heads_of_run
from fenchel.report import Columns, HeadsView, Report, Section, Table, read_log
from fenchel.settings import describe
from fenchel.training import Evaluation, Run


def run_report(
    run: Run,
    examples: Sequence[Any],
    split: str,
    evaluation: Evaluation,
    *,
    shown: int = 6,
    command: str = "",
) -> Report:
    """A page about a run, measured on some examples, `shown` of which it shows."""
    recipe, metrics = run.recipe, evaluation.metrics
    return Report(
        title=f"{recipe.name}: {run.path.resolve().name}",
        summary=f"On {len(examples)} examples, the model {recipe.task.summarize(metrics)}.",
        command=command,
        data=f"{len(examples)} examples ({split})",
        sections=[
            Section("Results", f"Task: {recipe.summary}.", _results(run, evaluation, split)),
            *_sections(run, examples, evaluation, shown),
            *heads_sections({recipe.name: run}, examples, shown),
        ],
        settings=_settings(run),
    )


def comparison_report(
    runs: Mapping[str, Run],
    examples: Sequence[Any],
    evaluations: Mapping[str, Evaluation],
    *,
    table: Table | None = None,
    shown: int = 6,
    command: str = "",
) -> Report:
    """A page about several runs of one task, measured on the same examples; the last one in full."""
    *_, last = runs
    findings = [f"{n} {run.task.summarize(evaluations[n].metrics)}" for n, run in runs.items()]
    sections = runs[last].task.comparison_sections(runs, examples, evaluations, shown)
    return Report(
        title=" and ".join(runs),
        summary=f"On {len(examples)} examples, {'; '.join(findings)}.",
        command=command,
        data=f"{len(examples)} examples",
        sections=[
            Section("Side by side", blocks=[table or comparison_table(runs, evaluations)]),
            *sections,
            *heads_sections(runs, examples, shown),
            *(
                replace(section, title=f"{last}: {section.title.lower()}")
                for section in _sections(runs[last], examples, evaluations[last], 0)
            ),
        ],
        settings=_settings(runs[last]),
    )


def comparison_table(runs: Mapping[str, Run], evaluations: Mapping[str, Evaluation]) -> Table:
    """One row per metric, one column per run."""
    rows: dict[str, dict[str, Any]] = {}
    for name, run in runs.items():
        table = run.task.metric_tables(evaluations[name].metrics, "")[0]
        for metric, value, meaning in table.rows:
            if value is not None:
                rows.setdefault(f"{metric}: {meaning}", {})[name] = value
    cells = [[title, *(values.get(name) for name in runs)] for title, values in rows.items()]
    return Table("Metrics", ["metric", *runs], cells)


def heads_sections(runs: Mapping[str, Run], examples: Sequence[Any], shown: int) -> list[Section]:
    """The attention heads of a run, or of the last two of several, if their task has any.

    Their attention is shown on the first `shown` examples.
    """
    chosen = dict(list(runs.items())[-2:])
    if not all(run.task.has_heads for run in chosen.values()):
        return []
    models = [
        model_heads(name, heads_of_run(run, examples, kept=shown), read_log(run.log_path))
        for name, run in chosen.items()
    ]
    text = (
        "Density is the mean share of the weights that are not zero. The roles are mean weights: on the "
        "token before, the same token, the next one, on the rest of a word that was split, and of "
        "interrogative words on a question mark."
    )
    return [Section("Attention heads", text, [HeadsView(models)])]


def _results(run: Run, evaluation: Evaluation, split: str) -> list[Any]:
    return run.task.metric_tables(evaluation.metrics, f"Metrics on {split}")


def _sections(
    run: Run, examples: Sequence[Any], evaluation: Evaluation, shown: int
) -> list[Section]:
    charts = run.task.training_charts(read_log(run.log_path))
    return [
        *([Section("Training", blocks=[Columns(charts)])] if charts else []),
        *run.task.report_sections(run, examples, evaluation, shown),
    ]


def _settings(run: Run) -> dict[str, str]:
    return {each.path: str(each.value) for each in describe(run.recipe)}
