"""Experiments of several tables become runs, each made once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fenchel import FenchelError
from fenchel.recipes.reproductions import TABLES, paper_table
from fenchel.recipes.reproductions.config import ReproductionConfig, find_dataset
from fenchel.recipes.reproductions.heads import ROLE_FIGURES
from fenchel.recipes.reproductions.plan import make_plan, unique_jobs
from fenchel.recipes.reproductions.proportions import SimulatedTable
from fenchel.recipes.reproductions.tables import HeadsTable, TrainedTable


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
        known = {"words", "speed"}
        if isinstance(table, TrainedTable):
            known = {measure.name for measure in table.measures}
            known |= {"ensemble"} if table.has_ensembles else set()
        if isinstance(table, HeadsTable):
            known = set(ROLE_FIGURES)
        for experiment in table.experiments:
            assert set(experiment.paper) <= known
            if isinstance(table, SimulatedTable):
                assert experiment.name in table.simulations
                continue
            for quick in (False, True):
                config = ReproductionConfig(quick=quick)
                assert config.recipe(table, experiment).name == table.recipe


def test_a_run_that_two_tables_need_is_made_once(data):
    tables = [trained("2019-peters/table2"), trained("2019-peters/table3")]
    config = ReproductionConfig(data, Path("runs"), seeds=2)
    experiments = make_plan([(t, t.experiments) for t in tables], config).experiments
    jobs = unique_jobs(experiments)
    assert len(experiments) == 6
    assert len(jobs) == 6
    assert all(job.splits == ("test", "dev") for job in jobs)
    assert [job.recipe.training.seed for job in jobs] == [0, 0, 0, 1, 1, 1]
    assert jobs[0].folder == Path("runs/multi30k-de-en/loss1.0-attention1.0")
    assert jobs[3].folder == Path("runs/multi30k-de-en/loss1.0-attention1.0-seed1")
    assert jobs[3].name == "2019-peters/table2, softmax, seed 1"
    assert all(e.uses(jobs[3]) == (e.experiment.name == "softmax") for e in experiments)


def test_seeds_count_from_the_one_that_is_set(data):
    table = trained("2019-peters/table2")
    config = ReproductionConfig(data, overrides=("seed=5",), seeds=2)
    (runs,) = make_plan([(table, table.experiments[:1])], config).experiments
    assert [job.recipe.training.seed for job in runs.jobs] == [5, 6]
    assert [job.folder.name[-6:] for job in runs.jobs] == ["-seed5", "-seed6"]
    assert [job.name for job in runs.jobs] == ["softmax, seed 5", "softmax, seed 6"]


def test_one_folder_cannot_hold_two_models(data):
    table = trained("2019-peters/table2")
    wider = replace(table, overrides=("hidden_size=8",))
    selection = [(each, each.experiments[:1]) for each in (table, wider)]
    plan = make_plan(selection, ReproductionConfig(data))
    with pytest.raises(FenchelError, match="must have the same settings"):
        unique_jobs(plan.experiments)


def test_a_set_is_found_by_its_files(data):
    assert find_dataset("multi30k", data) == data / "captions"
    assert find_dataset("small_parallel_enja", data) == data / "japanese"
    assert find_dataset("small_parallel_enja", data / "japanese") == data / "japanese"
    with pytest.raises(FenchelError, match="must contain the unpacked files of reuters21578"):
        find_dataset("reuters21578", data)
    with pytest.raises(FenchelError, match="nowhere or a folder in it must contain"):
        ReproductionConfig(data / "nowhere").table_data(trained("2019-peters/table2"))
