"""The interface between tasks and the training engine, the recipes and the command line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from torch import nn

from fenchel.data.bad_items import BadItems
from fenchel.data.dataset import Dataset

if TYPE_CHECKING:
    from fenchel.data.sentences import Tokens
    from fenchel.report import Chart, Log, Section, Table
    from fenchel.training.config import TrainingConfig
    from fenchel.training.run import Run

Metrics = dict[str, Any]
Paths = Sequence[str]
Output = Literal["lines", "terminal", "json"]
Columns = Mapping[str, str]  # names of columns that differ from those of the fields
OnProgress = Callable[[int], object]


class Processor(Protocol):
    """Turns examples into tensors; it is fitted to the training examples, as vocabularies are."""

    def encode(self, examples: Sequence[Any]) -> Dataset:
        """Examples as tensors."""
        ...

    def state(self) -> dict[str, Any]:
        """The processor as JSON."""
        ...


@dataclass(frozen=True)
class PublicSet:
    """A public data set in a folder; `options` say how it is read."""

    name: str
    folder: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a model on some examples, and its prediction for each of them."""

    metrics: Metrics
    predictions: Sequence[Any]


@dataclass(frozen=True)
class FittedModel:
    """A model that was fitted directly, without steps of an optimizer.

    Attributes:
        model: The model.
        epochs: Number of passes over the training examples.
        metrics: Its validation metrics: at least "loss" and the monitored one.
        converged: Whether more passes would not change it.
        remarks: Sentences for the user, such as settings that were chosen.
    """

    model: nn.Module
    epochs: int
    metrics: Mapping[str, float]
    converged: bool = True
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoOptions:
    """No options."""


class Predictor(ABC):
    """Predicts with a trained model, and formats the predictions."""

    @property
    def line_format(self) -> str:
        """What a typed line looks like, for a prompt."""
        return "a text"

    @abstractmethod
    def read(
        self, path: str, columns: Columns | None = None, bad: BadItems | None = None
    ) -> Iterator[Any | None]:
        """The inputs in a file, read one by one; None for a blank line between others.

        Standard input may also consist of lines that `parse` reads. A bad line that is skipped is None
        as well, where predictions are printed line by line.
        """

    @abstractmethod
    def parse(self, line: str) -> Any:
        """The input in a typed line."""

    @abstractmethod
    def predict(self, examples: Sequence[Any], progress: OnProgress | None = None) -> list[Any]:
        """One prediction per example; `progress` is called with the number of examples done."""

    @abstractmethod
    def to_json(self, example: Any, prediction: Any) -> dict[str, Any]:
        """A prediction as a JSON object."""

    @abstractmethod
    def to_lines(self, example: Any, prediction: Any) -> list[str]:
        """A prediction as lines of text, columns separated by tabs."""

    def to_table(self, examples: Sequence[Any], predictions: Sequence[Any], width: int) -> Any:
        """The predictions for a terminal of this width, as rich renders them; None prints lines."""
        return None

    def warnings(self, examples: Sequence[Any]) -> list[str]:
        """What the user should know about these examples, such as unknown words."""
        return []

    def finish(self, examples: Sequence[Any], predictions: Sequence[Any]) -> None:  # noqa: B027
        """Called after all predictions are printed."""


class Task(ABC):
    """A kind of problem: its files, its model, its metrics, its predictions and its report.

    A task is a frozen dataclass whose fields are its settings; each has a docstring, which
    `fenchel list --settings` prints. Examples are whatever `read` returns, predictions whatever
    `evaluate` and the predictor return; the engine only passes them on.
    """

    kind: ClassVar[str]
    """Name of the task in stored runs."""
    monitors: ClassVar[tuple[str, ...]]
    """Validation metrics that may select the best model: shares, which are maximised, and "loss"."""
    meanings: ClassVar[Mapping[str, str]]
    """What each metric of an evaluation means, in the order in which they are shown."""
    recordable_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of a batch, padded with 0, that determine its loss. With them steps can be recorded as CUDA
    graphs, because batches of similar shape can be padded to the same one."""
    needs_dev: ClassVar[bool] = True
    """Whether training needs development examples: if there are none, some are held out."""
    free_settings: ClassVar[tuple[str, ...]] = ()
    """Settings, or groups of them, that a stopped run may change when training resumes, because only
    predictions depend on them."""
    predict_options: ClassVar[type] = NoOptions
    """Dataclass of the options of `fenchel predict`."""
    evaluate_options: ClassVar[type] = NoOptions
    """Dataclass of the options of `fenchel evaluate`."""

    # Data

    @property
    @abstractmethod
    def columns(self) -> str:
        """The columns of a data file, for help and errors."""

    @abstractmethod
    def iterate(
        self,
        path: str,
        *,
        need_targets: bool = True,
        columns: Columns | None = None,
        keep_blank: bool = False,
        bad: BadItems | None = None,
    ) -> Iterator[Any | None]:
        """Read the examples of a file one by one; with `keep_blank`, a blank line is None.

        The error of a bad line goes to `bad.add`; by default, it is raised.
        """

    def read(
        self,
        paths: Paths,
        *,
        need_targets: bool = True,
        columns: Columns | None = None,
        bad: BadItems | None = None,
    ) -> list[Any]:
        """The examples of some files, in the order given."""
        options = {"need_targets": need_targets, "columns": columns, "bad": bad}
        return [example for path in paths for example in self.iterate(path, **options)]

    @abstractmethod
    def input_key(self, examples: Sequence[Any]) -> Callable[[Any], Hashable]:
        """A function that returns the input of an example as a hashable key.

        Examples with equal keys are the same question to a model trained on `examples`: they are held out
        together, and counted as overlaps of training and test data.
        """

    def bundled(self) -> Mapping[str, Sequence[Any]] | None:
        """The "train", "dev" and "test" examples that come with the package, if there are any."""
        return None

    def check_training_examples(  # noqa: B027
        self, examples: Sequence[Any], bad: BadItems
    ) -> None:
        """Check the training examples as a whole; errors go to `bad.add`."""

    def read_public(self, public: PublicSet) -> Mapping[str, Sequence[Any]]:
        """The "train", "dev" and "test" examples of a public data set.

        Further test sets, if it has any, are in a mapping "others".
        """
        raise NotImplementedError

    @abstractmethod
    def fit_processor(self, examples: Sequence[Any]) -> Processor:
        """The processor of a training set."""

    @abstractmethod
    def load_processor(self, state: Any, where: str) -> Processor:
        """The processor with this state; `where` names its file in errors."""

    @property
    def selects_examples(self) -> bool:
        """Whether the task defines `usable`, which needs the processor to refuse examples."""
        return type(self).usable is not Task.usable

    def usable(self, examples: Sequence[Any], processor: Any, bad: BadItems) -> Sequence[Any]:
        """The examples that a model with this processor can take; errors of others go to `bad.add`."""
        return examples

    def check_data(self, data: Any, examples: Sequence[Any]) -> None:  # noqa: B027
        """Raise if the model cannot take one of the examples, encoded as `data`; the error names it."""

    # Model

    @abstractmethod
    def sized(self, processor: Any) -> Self:
        """The task with the sizes that its model gets from the processor."""

    @property
    @abstractmethod
    def model_sizes(self) -> Mapping[str, int]:
        """Settings that are the size of a weight or count weights, by name.

        A stored run whose sizes exceed those of its weights is refused before anything is allocated.
        """

    @abstractmethod
    def build_model(self) -> nn.Module:
        """A new model.

        Its method `loss(batch, describe=True)` returns `fenchel.models.means.Means` with at least
        "loss"; the others, if `describe` is true, are validation metrics.
        """

    def initialize(self, model: Any, processor: Any) -> None:  # noqa: B027
        """Prepare a new model before training, for example with pretrained embeddings."""

    @property
    def fits_directly(self) -> bool:
        """Whether `fit_model` fits the model, instead of steps of an optimizer."""
        return type(self).fit_model is not Task.fit_model

    def fit_model(self, train: Any, dev: Any | None, training: TrainingConfig) -> FittedModel:
        """A model fitted directly to encoded examples, for tasks without steps of an optimizer.

        `training/direct_fit.py` calls it, and writes the folder of the run.

        Args:
            train: The training examples.
            dev: The development examples, or None if there are none.
            training: The training configuration, of which such tasks use few settings.
        """
        raise NotImplementedError

    def validation_batch(self, device_type: str) -> tuple[int, int | None]:
        """Maximum numbers of examples and of symbols per batch when nothing is trained."""
        return 256, None

    def model_values(self, model: Any) -> Mapping[str, float]:
        """Values of a model, such as learned parameters, that are logged at every validation."""
        return {}

    @property
    def has_heads(self) -> bool:
        """Whether the model has attention heads, whose tokens `attended_tokens` returns."""
        return type(self).attended_tokens is not Task.attended_tokens

    def attended_tokens(self, processor: Any, batch: Any) -> Mapping[str, Tokens]:
        """The tokens of a batch that the attention heads of the model see, for `fenchel analyze`.

        They are the "source" and the "target" of `fenchel.data.sentences.Sentences`.
        """
        raise NotImplementedError

    # Results

    @property
    def main_metric(self) -> str:
        """Name of the metric that `evaluate` reports first."""
        return self.monitors[0]

    def describe_means(self, means: Mapping[str, float]) -> list[str]:
        """Validation metrics as short texts, the most important first."""
        texts = []
        for name in (name for name in means if name in self.meanings):
            is_share = name in self.monitors and name != "loss"
            value = f"{100 * means[name]:.1f} %" if is_share else f"{means[name]:.4g}"
            texts.append(f"{name.replace('_', ' ')} {value}")
        return texts

    @abstractmethod
    def evaluate(
        self,
        run: Run,
        examples: Sequence[Any],
        options: Any = None,
        progress: OnProgress | None = None,
    ) -> Evaluation:
        """Metrics and predictions on examples with targets."""

    def evaluate_ensemble(self, runs: Sequence[Run], examples: Sequence[Any]) -> Metrics:
        """Metrics of the averaged predictions of several runs with equal processors."""
        raise NotImplementedError

    def metric_tables(self, metrics: Metrics, title: str) -> list[Table]:
        """The metrics with what they mean, the main one first."""
        from fenchel.report import Table

        names = dict.fromkeys([self.main_metric, *self.meanings])
        found = [name for name in names if metrics.get(name) is not None]
        rows = [(name, metrics[name], self.meanings[name]) for name in found]
        return [Table(title, ["metric", "value", "meaning"], rows)]

    @abstractmethod
    def predictor(self, run: Run, options: Any, output: Output = "lines") -> Predictor:
        """A predictor with options that are an instance of `predict_options`, for this output."""

    # Report

    def summarize(self, metrics: Metrics) -> str:
        """The main findings as the predicate of a sentence about the model."""
        return f"reaches {metrics[self.main_metric]:.1f} {self.meanings[self.main_metric]}"

    def training_charts(self, log: Log) -> list[Chart]:
        """The course of training."""
        from fenchel.report import log_chart

        charts = [log_chart(log, "Loss", "loss", {"train_loss": "training", "loss": "validation"})]
        for name in self.monitors:
            if name != "loss":
                series = {f"train_{name}": "training", name: "validation"}
                charts.append(log_chart(log, name.capitalize(), "share", series))
        return charts

    @abstractmethod
    def report_sections(
        self, run: Run, examples: Sequence[Any], evaluation: Evaluation, shown: int
    ) -> list[Section]:
        """What a report says about a run beside metrics and training, with `shown` examples."""

    def comparison_sections(
        self,
        runs: Mapping[str, Run],
        examples: Sequence[Any],
        evaluations: Mapping[str, Evaluation],
        shown: int,
    ) -> list[Section]:
        """What a report says about several runs side by side."""
        return []
