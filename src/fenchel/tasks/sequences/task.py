"""What the tasks of sequence-to-sequence models share: data, search, metrics and predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from fenchel.data.bad_items import BadItems
from fenchel.data.lines import uncompressed_name
from fenchel.data.records import JSON_ENDINGS
from fenchel.data.segmentation import normalized
from fenchel.tasks.alphas import MEANING, alpha_range, alpha_values, mean_alpha
from fenchel.tasks.search_options import SearchConfig, SearchOptions
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.config import DataConfig
from fenchel.tasks.sequences.decoding import SequenceModel, decode, validation_batch
from fenchel.tasks.sequences.encoded import SequencePairs, check_lengths
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.inflection import iterate_inflection, read_inflection
from fenchel.tasks.sequences.metrics import METRICS, evaluate_answers
from fenchel.tasks.sequences.parallel import iterate_parallel, read_parallel
from fenchel.tasks.sequences.predict_options import PredictOptions
from fenchel.tasks.sequences.public_sets import read_public_set
from fenchel.tasks.unknown_symbols import check_any_known
from fenchel.training.device import best_device
from fenchel.training.task import (
    Columns,
    Evaluation,
    Metrics,
    OnProgress,
    Output,
    Paths,
    PublicSet,
    Task,
)
from fenchel.training.validation import validate

if TYPE_CHECKING:
    from fenchel.report import Chart, Log, Section, Table
    from fenchel.search import Answer
    from fenchel.tasks.sequences.predictor import SequencePredictor
    from fenchel.training.run import Run

COLUMNS = {"inflection": "lemma<tab>form<tab>tags", "parallel": "source<tab>target"}
RECORDS = (".tsv", *JSON_ENDINGS)
MEANINGS = {
    "accuracy": "% correct answers",
    "bleu": "BLEU",
    "chrf": "chrF",
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
    "single": "% with one answer of non-zero probability",
    "complete": "% with all answers of non-zero probability found",
    "certified": "% proven to be the most probable",
    "attention_support": "source positions attended, on average",
    "output_support": "symbols considered, on average",
    "token_accuracy": "% correct next symbols",
    "alpha": MEANING,
    "examples": "number of examples",
    "signature": "how BLEU and chrF were computed",
}


@dataclass(frozen=True, kw_only=True)
class SequenceTask(Task):
    """A source sequence to a target sequence, with a certified search; a subclass has the model.

    Attributes:
        model: The configuration of the model, which has `source_size` and `target_size`.
    """

    monitors = ("accuracy", "exact", "loss")
    meanings = MEANINGS
    recordable_fields = ("source", "target")
    free_settings = ("metric", "search")
    predict_options = PredictOptions
    evaluate_options = SearchOptions

    metric: Literal["accuracy", "bleu", "rouge_l"] = "accuracy"
    """Main metric of an evaluation: "accuracy", "bleu" or "rouge_l"."""
    data: DataConfig = field(default_factory=DataConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    model: Any

    # Data

    @property
    def columns(self) -> str:
        return COLUMNS[self.data.format]

    def iterate(
        self,
        path: str,
        *,
        need_targets: bool = True,
        columns: Columns | None = None,
        keep_blank: bool = False,
        bad: BadItems | None = None,
    ) -> Iterator[Example | None]:
        read = iterate_inflection if self.data.format == "inflection" else iterate_parallel
        return read(
            path, need_targets=need_targets, columns=columns, keep_blank=keep_blank, bad=bad
        )

    def read(
        self,
        paths: Paths,
        *,
        need_targets: bool = True,
        columns: Columns | None = None,
        bad: BadItems | None = None,
    ) -> list[Example]:
        """The examples of some files, in the order given.

        Two parallel files whose names do not end in .tsv or .jsonl are the sources and the targets, line
        by line.
        """
        if self.data.format == "inflection":
            return read_inflection(paths, need_targets=need_targets, columns=columns, bad=bad)
        if len(paths) == 2 and not any(uncompressed_name(p).endswith(RECORDS) for p in paths):
            return read_parallel(*paths, bad=bad)
        return super().read(paths, need_targets=need_targets, columns=columns, bad=bad)

    def input_key(self, examples: Sequence[Example]) -> Callable[[Example], Any]:
        several = len({example.group for example in examples}) > 1

        def input_key(example: Example) -> Any:
            hidden = example.has_language and not several  # a model of one language does not see it
            source = normalized(example.source, self.data.normalization)
            return source, example.tags[1:] if hidden else example.tags

        return input_key

    def bundled(self) -> Mapping[str, Sequence[Example]] | None:
        from fenchel.tasks.sequences.public_sets import shipped

        return shipped() if self.data.format == "inflection" else None

    def read_public(self, public: PublicSet) -> Mapping[str, Sequence[Example]]:
        return read_public_set(public.name, public.folder, **public.options)

    def fit_processor(self, examples: Sequence[Example]) -> Codec:
        return Codec.fit(
            examples,
            segmentation=self.data.segmentation,
            merges=self.data.merges,
            joint=self.data.joint,
            min_count=self.data.min_count,
            normalization=self.data.normalization,
        )

    def load_processor(self, state: Any, where: str) -> Codec:
        return Codec.from_state(state, where)

    def check_data(self, data: SequencePairs, examples: Sequence[Example]) -> None:
        check_lengths(data, examples, self.model)
        check_any_known("sources", data.source.values, examples[0].source)

    # Model

    def sized(self, processor: Codec) -> Self:
        source, target = len(processor.source_vocabulary), len(processor.target_vocabulary)
        return replace(self, model=replace(self.model, source_size=source, target_size=target))

    @abstractmethod
    def build_model(self) -> Any:
        """A new `SequenceModel`."""

    def model_values(self, model: SequenceModel) -> Mapping[str, float]:
        return alpha_values(model)

    def validation_batch(self, device_type: str) -> tuple[int, int | None]:
        return validation_batch(device_type, self.model.target_size)

    # Results

    @property
    def main_metric(self) -> str:
        return self.metric

    def describe_means(self, means: Mapping[str, float]) -> list[str]:
        return [
            f"loss {means['loss']:.4f}",
            f"symbols {100 * means['accuracy']:.1f} %",
            f"sequences {100 * means['exact']:.1f} %",
            f"attended {means['attention_support']:.1f}",
            f"considered {means['output_support']:.1f}",
            *alpha_range(means),
        ]

    def evaluate(
        self,
        run: Run,
        examples: Sequence[Example],
        options: SearchOptions | None = None,
        progress: OnProgress | None = None,
    ) -> Evaluation:
        """Metrics of beam search, and with known targets.

        Percentages are those of `evaluate_answers`. `attention_support` and `output_support` are means
        per symbol of the targets, `token_accuracy` is the share of symbols that are the first choice of
        the model.
        """
        width = (options and options.beam) or self.search.width
        data = _codec(run).encode(examples)
        self.check_data(data, examples)
        answers = self._decode([run], examples, width, progress)
        metrics = evaluate_answers(answers, examples, _codec(run), self.metric).state()
        model: Any = run.model
        means = validate(self, model, data.to(best_device()))
        metrics |= {name: means[name] for name in ("attention_support", "output_support", "loss")}
        metrics["token_accuracy"] = 100 * means["accuracy"]
        metrics |= mean_alpha(model)
        return Evaluation(metrics, answers)

    def evaluate_ensemble(self, runs: Sequence[Run], examples: Sequence[Example]) -> Metrics:
        """Metrics of a beam search over the averaged probabilities of the models."""
        answers = self._decode(runs, examples, self.search.width)
        return evaluate_answers(answers, examples, _codec(runs[0]), self.metric).state()

    def _decode(
        self,
        runs: Sequence[Run],
        examples: Sequence[Example],
        width: int,
        progress: OnProgress | None = None,
    ) -> list[Answer]:
        models: list[Any] = [run.model for run in runs]
        return decode(
            models,
            _codec(runs[0]),
            examples,
            width=width,
            batch_size=self.search.sentences,
            max_length=self.search.max_length,
            device=best_device(),
            progress=progress,
        )

    def metric_tables(self, metrics: Metrics, title: str) -> list[Table]:
        from fenchel.report import Table

        (table,) = super().metric_tables(metrics, title)
        groups = list(metrics.get("groups", {}).items())
        if len(groups) < 2:
            return [table]
        (name, value, meaning), *others = table.rows
        main = (name, value, f"{meaning}, averaged over languages")
        by_language = Table("by language", ["language", self.metric], groups)
        return [replace(table, rows=[main, *others]), by_language]

    def predictor(
        self, run: Run, options: PredictOptions, output: Output = "lines"
    ) -> SequencePredictor:
        from fenchel.tasks.sequences.predictor import SequencePredictor

        return SequencePredictor(run, options, output)

    # Report

    def summarize(self, metrics: Metrics) -> str:
        return (
            f"reaches {metrics[self.metric]:.1f} {METRICS[self.metric]}, "
            f"attending to {metrics['attention_support']:.1f} source symbols "
            f"and considering {metrics['output_support']:.1f} next symbols on average"
        )

    def training_charts(self, log: Log) -> list[Chart]:
        from fenchel.tasks.sequences.report import training_charts

        return training_charts(log)

    def report_sections(
        self, run: Run, examples: Sequence[Example], evaluation: Evaluation, shown: int
    ) -> list[Section]:
        from fenchel.tasks.sequences.report import report_sections

        return report_sections(run, examples, evaluation, shown)

    def comparison_sections(
        self,
        runs: Mapping[str, Run],
        examples: Sequence[Example],
        evaluations: Mapping[str, Evaluation],
        shown: int,
    ) -> list[Section]:
        from fenchel.tasks.sequences.report import comparison_sections

        return comparison_sections(runs, examples, evaluations, shown)


def _codec(run: Run) -> Codec:
    codec: Any = run.processor
    return codec
