"""`fenchel reproduce` writes what it says, side by side or not, in one sitting or in several."""

from __future__ import annotations

import json

import pytest

from fenchel import FenchelError
from fenchel.recipes.reproductions import jobs, throughput
from fenchel.recipes.reproductions.config import TableData
from fenchel.recipes.reproductions.jobs import Reporter, TrainingJob, ensemble_metrics, read_splits
from fenchel.tasks import load_run
from fenchel.tasks.sequences import Seq2SeqTask
from fenchel.training.files import load_json

FIELDS = {"name", "ours", "paper", "runs", "signature", "command", "commit", "hardware"}
PAIRS = [
    ("ein hund läuft über das feld", "a dog runs over the field"),
    ("eine katze schläft auf dem dach", "a cat sleeps on the roof"),
    ("zwei kinder spielen im garten", "two children play in the garden"),
]


@pytest.fixture
def multi30k(tmp_path):
    """A folder in the form of the public set, with a few sentences."""
    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    for stem in ("train", "val", "test_2016_flickr"):
        for side, language in enumerate(("de", "en")):
            text = "".join(f"{pair[side]}\n" for pair in PAIRS * 3)
            (folder / f"{stem}.{language}").write_text(text, encoding="utf-8")
    return folder


def reproduce(fenchel, name, folder, tmp_path, *options):
    places = ["--data", folder, "--results", tmp_path / "results", "--runs", tmp_path / "runs"]
    settings = ["--set", "max_length=30", "--set", "accelerator=cpu"]
    return fenchel("reproduce", name, "--quick", *places, *settings, *options)


def rows_of(tmp_path, name):
    return load_json(tmp_path / "results" / name / "quick.json")


def test_a_table_is_reproduced_row_by_row(fenchel, multi30k, tmp_path):
    outcome = reproduce(fenchel, "2019-peters/table2", multi30k.parent, tmp_path)
    assert outcome.code == 0, outcome.err
    rows = rows_of(tmp_path, "2019-peters/table2")
    assert [row["name"] for row in rows] == ["softmax: bleu", "1.5-entmax: bleu", "sparsemax: bleu"]
    assert [row["paper"] for row in rows] == [25.70, 26.17, 24.69]
    assert all(set(row) == FIELDS for row in rows)
    assert all(row["runs"] == [row["ours"]] for row in rows)
    assert "tok:13a" in rows[0]["signature"]
    assert "--quick" in rows[0]["command"]
    again = reproduce(fenchel, "2019-peters/table3", multi30k, tmp_path, "--only", "sparsemax")
    assert "epoch" not in again.err
    figures = {row["name"]: row["paper"] for row in rows_of(tmp_path, "2019-peters/table3")}
    assert figures == {"sparsemax: attended": 3.75, "sparsemax: target words": 7.55}


def test_several_seeds_are_averaged_and_ensembled(fenchel, multi30k, tmp_path, monkeypatch):
    options = ["--only", "sparsemax"]
    outcome = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options, "--seeds", 2)
    assert outcome.code == 0, outcome.err
    average, ensemble = rows_of(tmp_path, "2019-peters/table2")
    assert average["ours"] == pytest.approx(sum(average["runs"]) / 2)
    assert len(average["runs"]) == 2
    assert (ensemble["name"], ensemble["paper"]) == ("sparsemax: ensemble", None)
    assert set(ensemble) == FIELDS - {"runs"}
    assert "--seeds 2" in average["command"]
    monkeypatch.setattr(Seq2SeqTask, "evaluate", None)
    again = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options)
    assert again.code == 0, "the figures are kept with the run"


def test_an_ensemble_of_one_run_with_itself_is_that_run(fenchel, multi30k, tmp_path):
    options = ["--only", "sparsemax", "--set", "epochs=8", "--set", "learning_rate=0.05"]
    outcome = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options)
    assert outcome.code == 0, outcome.err
    folder = tmp_path / "runs" / "quick" / "multi30k-de-en" / "loss2.0-attention2.0"
    recipe, source = load_run(folder).recipe, TableData("multi30k", multi30k, quick=True)
    job = TrainingJob("once", folder, recipe, source, ("test",))
    messages = []
    reporter = Reporter(messages.append)
    figures = ensemble_metrics("twice", [job, job], "test", reporter)
    kept = load_json(folder / "metrics.json")["test_evaluation"]
    split, examples = load_run(folder).evaluation_examples()
    assert (split, examples) == ("test", read_splits(source, recipe).test), (
        "the run knows its public set"
    )
    assert figures["chrf"] > 0
    assert {name: kept[name] for name in figures} == figures
    assert messages == ["twice: ensemble of 2 runs"]


def test_tables_side_by_side_share_their_runs(fenchel, multi30k, tmp_path):
    options = ["2019-peters/table3", "--only", "^softmax", "--jobs", 2]
    outcome = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options)
    assert outcome.code == 0, outcome.err
    assert len(rows_of(tmp_path, "2019-peters/table2")) == 1
    assert len(rows_of(tmp_path, "2019-peters/table3")) == 2
    command = rows_of(tmp_path, "2019-peters/table3")[0]["command"]
    assert command.startswith("fenchel reproduce 2019-peters/table3 --only '^softmax$' --set")
    assert len(list((tmp_path / "runs").rglob("config.json"))) == 1


def test_without_time_a_run_is_measured_as_it_is_and_goes_on(fenchel, multi30k, tmp_path):
    options = ["--only", "^softmax", "--set", "epochs=3", "--set", "max_seconds=0.001"]
    for epoch in ("1", "2"):
        outcome = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options)
        assert outcome.code == 0, outcome.err
        assert f"softmax: time limit reached after {epoch} of 3 epochs" in outcome.err
        (row,) = rows_of(tmp_path, "2019-peters/table2")
        assert row["finished"] is False
    options[-1] = "max_seconds=none"
    assert reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options).code == 0
    (row,) = rows_of(tmp_path, "2019-peters/table2")
    assert "finished" not in row


def test_a_failing_experiment_does_not_lose_the_others(fenchel, multi30k, tmp_path, monkeypatch):
    fit = jobs.fit

    def fit_some(folder, recipe, *others, **options):
        if recipe.task.model.output_alpha == 1:
            raise FenchelError("softmax is not for today")
        return fit(folder, recipe, *others, **options)

    monkeypatch.setattr(jobs, "fit", fit_some)
    options = ["--only", "softmax|sparsemax"]
    outcome = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options)
    assert outcome.code == 1
    assert outcome.err.rstrip().endswith("softmax: softmax is not for today")
    assert [row["name"] for row in rows_of(tmp_path, "2019-peters/table2")] == ["sparsemax: bleu"]


def test_a_model_without_its_checkpoint_is_not_trained_again(fenchel, multi30k, tmp_path):
    options = ["--only", "sparsemax"]
    assert reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options).code == 0
    (model,) = (tmp_path / "runs").rglob("best.pt")
    before = model.stat().st_mtime_ns, rows_of(tmp_path, "2019-peters/table2")
    (model.parent / "checkpoints" / "last.ckpt").unlink()
    outcome = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *options)
    assert outcome.code == 1
    assert "without checkpoints/last.ckpt" in outcome.err
    assert (model.stat().st_mtime_ns, rows_of(tmp_path, "2019-peters/table2")) == before


def test_speeds_are_taken_in_turns(fenchel, multi30k, tmp_path):
    outcome = reproduce(fenchel, "2019-peters/figure6", multi30k, tmp_path)
    assert outcome.code == 0, outcome.err
    rows = rows_of(tmp_path, "2019-peters/figure6")
    assert [row["paper"] for row in rows[:3]] == [14500, 13000, 10500]
    assert rows[3]["name"] == "1.5-entmax / softmax: speed"
    assert rows[3]["paper"] == pytest.approx(0.897, abs=1e-3)
    assert len(rows) == 5
    assert all(row["ours"] > 0 for row in rows)


def test_transformers_are_compared_by_bleu_by_speed_and_by_their_heads(fenchel, multi30k, tmp_path):
    tables = ["2019-correia/table-speed", "--only", "^softmax$|α"]
    outcome = reproduce(fenchel, "2019-correia/table1", multi30k, tmp_path, *tables)
    assert outcome.code == 0, outcome.err
    rows = rows_of(tmp_path, "2019-correia/table1")
    assert [(row["name"], row["paper"]) for row in rows] == [
        ("softmax: bleu", 29.79),
        ("α-entmax: bleu", 29.90),
    ]
    again = reproduce(fenchel, "2019-correia/figures", multi30k, tmp_path, "--only", "^softmax$|α")
    assert again.code == 0, again.err
    assert "epoch" not in again.err
    rows = rows_of(tmp_path, "2019-correia/figures")
    paper = {row["name"]: row["paper"] for row in rows if row["paper"] is not None}
    assert paper["α-entmax: offset −1 heads"] == 4
    ours = {row["name"]: row["ours"] for row in rows}
    assert ours["softmax: encoder density"] == 1 > ours["α-entmax: encoder density"] > 0
    assert 1 < ours["α-entmax: encoder lowest alpha"] < ours["α-entmax: encoder highest alpha"] < 2
    drawn = {path.stem for path in (tmp_path / "results/2019-correia/figures/quick").glob("*.png")}
    assert drawn >= {"alpha-courses", "alpha-histograms", "densities-by-layer", "diversity"}
    *_, ratio, baseline = rows_of(tmp_path, "2019-correia/table-speed")
    assert (baseline["name"], baseline["paper"]) == ("torch.nn.Transformer / softmax: speed", None)
    assert (ratio["name"], ratio["paper"]) == ("α-entmax / softmax: speed", 0.75)
    assert ratio["ours"] > 0


def test_a_table_of_speeds_that_fails_is_told_at_the_end(fenchel, multi30k, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("no time at all")

    monkeypatch.setattr(throughput, "measure_speeds", fail)
    tables = ["2019-peters/figure6", "--only", "^sparsemax|^softmax"]
    outcome = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, *tables)
    assert outcome.code == 1
    assert "2019-peters/figure6: " in outcome.err
    assert "\nZeroDivisionError: no time at all\n" in outcome.err
    assert len(rows_of(tmp_path, "2019-peters/table2")) == 2


def test_headlines_are_compared_by_rouge(fenchel, tmp_path):
    story = "the bank said it would raise its rates again in the coming weeks, by {} {}"
    stories = [
        {"lewis": split, "title": f"BANK {k}", "body": story.format(k, split)}
        for split in ("TRAIN", "NOT-USED", "TEST")
        for k in range(4)
    ]
    lines = "".join(json.dumps(story) + "\n" for story in stories)
    (tmp_path / "reuters21578.jsonl").write_text(lines, encoding="utf-8")
    outcome = reproduce(fenchel, "2017-niculae/table2", tmp_path, tmp_path, "--only", "fusedmax")
    assert outcome.code == 0, outcome.err
    assert [row["paper"] for row in rows_of(tmp_path, "2017-niculae/table2")] == [
        36.09,
        17.62,
        33.69,
    ]


def test_what_cannot_be_reproduced_is_told(fenchel, multi30k, tmp_path):
    wrong = fenchel("reproduce", "2019-peters/table1")
    assert wrong.code == 2
    assert "2019-peters/table1-" in wrong.err
    nothing = reproduce(fenchel, "2019-peters/table2", multi30k, tmp_path, "--only", "hardmax")
    assert nothing.code == 2
    assert "1.5-entmax" in nothing.err
    elsewhere = reproduce(fenchel, "2019-peters/table2", tmp_path / "nowhere", tmp_path)
    assert elsewhere.code == 2
    assert "nowhere" in elsewhere.err


def test_label_sets_are_reproduced_with_the_sets_of_their_experiments(fenchel, tmp_path):
    """Two runs per loss, each tuned for a measure."""
    folder = tmp_path / "data" / "emotions"
    folder.mkdir(parents=True)
    header = "@relation x\n@attribute f numeric\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n"
    rows = "".join(f"{k},{k % 2},{(k + 1) % 2}\n" for k in range(12))
    for split in ("train", "test"):
        (folder / f"emotions-{split}.arff").write_text(header + rows, encoding="utf-8")
    xml = '<labels><label name="a"/><label name="b"/></labels>'
    (folder / "emotions.xml").write_text(xml, encoding="utf-8")
    places = [
        "--data",
        folder.parent,
        "--results",
        tmp_path / "results",
        "--runs",
        tmp_path / "runs",
    ]
    name = "2016-martins/table2"
    outcome = fenchel("reproduce", name, "--quick", *places, "--only", "emotions, s")
    assert outcome.code == 0, outcome.err
    found = {row["name"]: row["paper"] for row in rows_of(tmp_path, name)}
    assert found == {
        "emotions, softmax: micro F1": 67.34,
        "emotions, softmax: macro F1": 67.51,
        "emotions, softmax: mean F1 of labels": None,
        "emotions, sparsemax: micro F1": 66.38,
        "emotions, sparsemax: macro F1": 66.07,
        "emotions, sparsemax: mean F1 of labels": None,
    }
