"""The options of a reproduction, and the recipes, run folders and data sets that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fenchel.data.lines import find_file
from fenchel.data.public_set_info import PublicSetInfo, base_folder, public_set_info
from fenchel.errors import FenchelError
from fenchel.recipes import make_recipe
from fenchel.recipes.reproductions.tables import Experiment, PaperTable
from fenchel.training import PublicSet, Recipe

SEQUENCES = ("inflection", "transformer", "translation", "summarization")
AS_PUBLISHED: Mapping[str, tuple[str, ...]] = dict.fromkeys(SEQUENCES, ("normalization=none",))
QUICK = ("hidden_size=16", "epochs=1", "warmup_steps=0")
QUICK_SEQUENCES = (*QUICK, "layers=1", "merges=60", "width=2")
QUICK_OF_RECIPE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(SEQUENCES, (*QUICK_SEQUENCES, "embedding_size=16")),
    "transformer": (*QUICK_SEQUENCES, "heads=2", "feedforward_size=16"),
    "multilabel": ("penalties=0.1", "folds=2", "min_count=1", "epochs=20"),
}
QUICK_OF_OTHERS = (*QUICK, "embedding_size=16", "max_words=20")


@dataclass(frozen=True)
class TableData:
    """The public data set of a table.

    Args:
        dataset: Its name.
        folder: Its folder.
        options: Options for reading it.
        quick: Whether only a few examples of each split are used.
    """

    dataset: str
    folder: Path
    options: tuple[tuple[str, str], ...] = ()
    quick: bool = False

    @property
    def public(self) -> PublicSet:
        """The data set as stored in a run."""
        return PublicSet(self.dataset, str(self.folder.resolve()), dict(self.options))


@dataclass(frozen=True)
class ReproductionConfig:
    """The options of `fenchel reproduce` that say how tables are made.

    Args:
        data: The folder of the public data sets.
        runs: The folder of the runs. A finished run that it contains is not trained again.
        overrides: Settings for all experiments, `key=value`.
        seeds: Number of runs per experiment.
        quick: Whether tiny models are trained on a few examples, as a test.
        results: The folder of the result files, and of pictures.
    """

    data: Path = Path("data")
    runs: Path = Path("runs")
    overrides: tuple[str, ...] = ()
    seeds: int = 1
    quick: bool = False
    results: Path = Path("results")

    def recipe(
        self, table: PaperTable, experiment: Experiment, files: Sequence[str] = ()
    ) -> Recipe:
        """The recipe of an experiment. Later overrides win: table, experiment, command line.

        `files` are the settings of the table that are files: see `table_files`.
        """
        quick = QUICK_OF_RECIPE.get(table.recipe, QUICK_OF_OTHERS) if self.quick else ()
        published = AS_PUBLISHED.get(table.recipe, ())
        defaults = (*published, *table.overrides, *files, *experiment.overrides)
        return make_recipe(table.recipe, [*defaults, *quick, *self.overrides])

    def table_files(self, table: PaperTable) -> list[str]:
        """The settings of a table that are files of the data folder; none for tiny models."""
        settings: list[str] = []
        if self.quick:
            return settings
        for name, paths in table.files.items():
            found = next((self.data / path for path in paths if (self.data / path).exists()), None)
            if found is None:
                raise FenchelError(f"{self.data} must have the file {' or '.join(paths)}, got none")
            settings.append(f"{name}={found.resolve()}")
        return settings

    def run_folder(self, experiment: Experiment, seed: int) -> Path:
        """The folder of a run; the name has no suffix for seed 0."""
        parent = self.runs / "quick" if self.quick else self.runs
        return parent / (experiment.folder + (f"-seed{seed}" if seed else ""))

    def table_data(self, table: PaperTable, experiment: Experiment | None = None) -> TableData:
        """The data set of a table, or of one of its experiments."""
        own = experiment or Experiment("", "", ())
        dataset, options = own.dataset or table.dataset, {**table.options, **own.options}
        folder = find_dataset(dataset, self.data)
        return TableData(dataset, folder, tuple(sorted(options.items())), self.quick)


def find_dataset(dataset: str, data: Path) -> Path:
    """The folder with most files of a data set: `data` itself or any folder in it."""
    info = public_set_info(dataset)
    inside = sorted(path for path in data.iterdir() if path.is_dir()) if data.is_dir() else []
    counts = {folder: _files(info, folder) for folder in (data / dataset, data, *inside)}
    folder = max(counts, key=lambda each: counts[each])
    if not counts[folder]:
        required = f"the unpacked files of {dataset} ({info.url})"
        raise FenchelError(f"{data} or a folder in it must contain {required}, got none of them")
    return folder


def _files(data: PublicSetInfo, folder: Path) -> int:
    if not folder.is_dir():
        return 0
    base = base_folder(data, folder)
    return sum(find_file(base / path) is not None for path in data.lines)
