"""Experiments of several tables become runs, each made once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fenchel import FenchelError
from fenchel.recipes.reproductions import TABLES, paper_table
from fenchel.recipes.reproductions.plan import all_jobs, planned
from fenchel.recipes.reproductions.source import Source, located
from fenchel.recipes.reproductions.table import TimedTable, TrainedTable
from fenchel.recipes.reproductions.training import Occasion, configured


def trained(name: str) -> TrainedTable:
    table = paper_table(name)
    assert isinstance(table, TrainedTable)
    return table


@pytest.fixture
def data(tmp_path) -> Path:
    """Public sets under names of somebody's own; one file of each is enough to be found."""
    for name in ("captions/train.de", "captions/val.de", "japanese/train.ja", "japanese/dev.ja"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n", encoding="utf-8")
    return tmp_path


def test_every_table_has_a_valid_recipe_and_measures_for_its_figures():
    for name, table in TABLES.items():
        assert name == table.name
        folders = [experiment.folder for experiment in table.experiments]
        assert len(set(folders)) == len(folders)
        known = {"words"} if isinstance(table, TimedTable) else {m.name for m in table.measures}
        if isinstance(table, TrainedTable) and table.has_ensembles:
            known.add("ensemble")
        for experiment in table.experiments:
            assert set(experiment.paper) <= known
            for quick in (False, True):
                occasion = Occasion(Path("runs"), quick=quick)
                assert configured(table, experiment, occasion).name == table.recipe


def test_a_run_that_two_tables_need_is_made_once(data):
    tables = [trained("2019-peters/table2"), trained("2019-peters/table3")]
    occasion = Occasion(Path("runs"))
    made = planned([(table, table.experiments) for table in tables], data, occasion, seeds=2)
    jobs = all_jobs(made)
    assert len(made) == 6
    assert len(jobs) == 6
    assert all(job.splits == ("test", "dev") for job in jobs)
    assert [job.recipe.training.seed for job in jobs] == [0, 0, 0, 1, 1, 1]
    assert jobs[0].folder == Path("runs/multi30k-de-en/loss1.0-attention1.0")
    assert jobs[3].folder == Path("runs/multi30k-de-en/loss1.0-attention1.0-seed1")
    assert jobs[3].name == "2019-peters/table2, softmax, seed 1"
    assert all(each.needs(jobs[3]) == (each.experiment.name == "softmax") for each in made)


def test_seeds_count_from_the_one_that_is_set(data):
    table = trained("2019-peters/table2")
    occasion = Occasion(Path("runs"), ("seed=5",))
    (made,) = planned([(table, table.experiments[:1])], data, occasion, seeds=2)
    assert [job.recipe.training.seed for job in made.jobs] == [5, 6]
    assert [job.folder.name[-6:] for job in made.jobs] == ["-seed5", "-seed6"]
    assert [job.name for job in made.jobs] == ["softmax, seed 5", "softmax, seed 6"]


def test_one_folder_cannot_hold_two_models(data):
    table = trained("2019-peters/table2")
    wider = replace(table, changes=("hidden_size=8",))
    chosen = [(each, each.experiments[:1]) for each in (table, wider)]
    made = planned(chosen, data, Occasion(Path("runs")), seeds=1)
    with pytest.raises(FenchelError, match="holds one model"):
        all_jobs(made)


def test_a_set_is_found_by_its_files(data):
    assert located("multi30k", data) == data / "captions"
    assert located("small_parallel_enja", data) == data / "japanese"
    assert located("small_parallel_enja", data / "japanese") == data / "japanese"
    with pytest.raises(FenchelError, match="expected reuters21578, unpacked"):
        located("reuters21578", data)
    with pytest.raises(FenchelError, match="nowhere holds the data"):
        Source.of(trained("2019-peters/table2"), data / "nowhere")
