"""An edited tree is told from the commit it was edited from, and its figures are computed anew."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from fenchel.recipes import recipe
from fenchel.recipes.reproductions import job
from fenchel.recipes.reproductions.origin import commit, sources


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a person", "-c", "user.email=person@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in a repository of its own, committed."""
    folder = tmp_path / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text("ONE = 1\n")
    _git(tmp_path, "init")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-m", "first")
    return folder


def _said(package: Path) -> str:
    commit.cache_clear()
    sources.cache_clear()
    return commit(package)


def test_an_edited_package_is_marked(package: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FENCHEL_COMMIT", raising=False)
    plain = _said(package)
    assert len(plain) == 12
    (package.parents[1] / "notes.md").write_text("no source\n")
    assert _said(package) == plain
    (package / "one.py").write_text("ONE = 2\n")
    edited = _said(package)
    assert edited.startswith(f"{plain}-edited-")
    (package / "one.py").write_text("ONE = 3\n")
    assert _said(package) not in (plain, edited)
    (package / "one.py").write_text("ONE = 1\n")
    assert _said(package) == plain
    (package / "two.py").write_text("TWO = 2\n")
    assert _said(package).startswith(f"{plain}-edited-")
    monkeypatch.setenv("FENCHEL_COMMIT", "given")
    assert _said(package) == "given"


def test_figures_are_kept_for_the_same_sources_only(monkeypatch: pytest.MonkeyPatch):
    kept, computed = {}, []
    run = SimpleNamespace(metrics=kept, model_config=None)
    monkeypatch.setattr(job.Run, "load", lambda folder: run)
    monkeypatch.setattr(job, "commit", lambda: "c0ffee")
    monkeypatch.setattr(job, "figures_of", lambda *_: (computed.append(1) or {"bleu": 1.0}, []))
    monkeypatch.setattr(
        job, "keep_figures", lambda run, split, figures: kept.update({f"{split}_search": figures})
    )
    made = recipe("translation", [])
    one = job.Job("one", Path("run"), made, None, ("dev",))  # pyright: ignore[reportArgumentType]
    for digest, times in (("a", 1), ("a", 1), ("b", 2), ("b", 2)):
        monkeypatch.setattr(job, "sources", lambda digest=digest: digest)
        found = one._measured(SimpleNamespace(dev=[]), "dev", job._way(made))
        assert (found["bleu"], found["sources"], len(computed)) == (1.0, digest, times)
