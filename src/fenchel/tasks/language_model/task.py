"""The task of language models: each symbol of a text from those before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, final

from fenchel.checks import check_count
from fenchel.data.bad_items import BadItems
from fenchel.data.segmentation import Normalization, check_normalization, normalized
from fenchel.data.sentences import Tokens, tokens_of_ids
from fenchel.data.vocabulary import EOS
from fenchel.errors import FenchelError
from fenchel.models.next_token import tokens_before
from fenchel.models.transformer import LanguageModel, LanguageModelConfig
from fenchel.stored_json import shortened
from fenchel.tasks.alphas import MEANING, alpha_charts, alpha_range, alpha_values, mean_alpha
from fenchel.tasks.language_model.metrics import smoothed_metrics
from fenchel.tasks.language_model.texts import (
    LanguageModelBatch,
    LanguageModelData,
    LanguageModelProcessor,
    iterate_texts,
)
from fenchel.tasks.search_options import GenerationOptions, SearchConfig
from fenchel.tasks.unknown_symbols import check_any_known
from fenchel.training.device import best_device
from fenchel.training.task import Columns, Evaluation, OnProgress, Output, Task
from fenchel.training.validation import validate

if TYPE_CHECKING:
    from fenchel.report import Chart, Log, Section
    from fenchel.tasks.language_model.predictor import ContinuationPredictor
    from fenchel.training.run import Run

LONGEST = 60  # symbols of a readable picture
CPU_SYMBOLS, GPU_SYMBOLS = 2**12, 2**16  # per batch with known symbols
MEANINGS = {
    "perplexity": "perplexity per symbol",
    "eps_perplexity": "perplexity per symbol, with 1e-6 added to all probabilities",
    "sparsemax_score": "sparsemax score: 1 is perfect",
    "loss": "loss per symbol",
    "accuracy": "% correct next symbols",
    "output_support": "symbols considered, on average",
    "attention_support": "positions attended, on average",
    "alpha": MEANING,
    "symbols": "number of symbols",
    "examples": "number of texts",
}


@final
@dataclass(frozen=True, kw_only=True)
class LanguageModelTask(Task):
    """A plain text, line by line or as running text, with a decoder-only Transformer."""

    kind = "language-model"
    monitors = ("accuracy", "loss")
    meanings = MEANINGS
    free_settings = ("search",)
    predict_options = GenerationOptions

    segmentation: Literal["characters", "words", "subwords"] = "subwords"
    """Symbols of a text: "characters", "words" or "subwords"."""
    merges: int = 8000
    """Number of merges learned for "subwords"."""
    min_count: int = 1
    """Symbols that occur less often than this are unknown."""
    normalization: Normalization = "NFC"
    """Unicode normal form in which texts are read and written."""
    block_size: int | None = None
    """Number of symbols per block of running text; None takes each line by itself."""
    search: SearchConfig = field(default_factory=SearchConfig)
    model: LanguageModelConfig = field(default_factory=LanguageModelConfig)

    def __post_init__(self) -> None:
        check_count(self.min_count, "min_count")
        check_count(self.merges, "merges", least=0)
        check_normalization(self.normalization)
        longest = self.model.max_positions
        if self.block_size is not None:
            check_count(self.block_size, "block_size")
            if self.block_size > longest:
                raise FenchelError(
                    f"block_size must be at most max_positions = {longest}, got {self.block_size}"
                )
        if self.search.max_length >= longest:
            raise FenchelError(
                f"search.max_length must be below max_positions = {longest}, "
                f"got {self.search.max_length}"
            )

    # Data

    @property
    def columns(self) -> str:
        return "text"

    def iterate(
        self,
        path: str,
        *,
        need_targets: bool = True,
        columns: Columns | None = None,
        keep_blank: bool = False,
        bad: BadItems | None = None,
    ) -> Iterator[str | None]:
        if columns:
            raise FenchelError("--columns cannot be used with plain text")
        return iterate_texts(path, keep_blank=keep_blank, bad=bad)

    def input_key(self, examples: Sequence[str]) -> Callable[[str], str]:
        return lambda text: normalized(text, self.normalization)

    def fit_processor(self, examples: Sequence[str]) -> LanguageModelProcessor:
        return LanguageModelProcessor.fit(
            examples,
            segmentation=self.segmentation,
            merges=self.merges,
            min_count=self.min_count,
            normalization=self.normalization,
            block_size=self.block_size,
        )

    def load_processor(self, state: Any, where: str) -> LanguageModelProcessor:
        return LanguageModelProcessor.from_state(state, where)

    def check_data(self, data: LanguageModelData, examples: Sequence[str]) -> None:
        longest, lengths = self.model.max_positions, data.rows.lengths
        if int(lengths.max()) > longest:
            place = int(lengths.argmax())
            raise FenchelError(
                f"a text must have at most max_positions = {longest} symbols, or block_size must be "
                f"set, got {int(lengths[place])} in text {place + 1}: {shortened(examples[place])}"
            )
        values = data.rows.values
        check_any_known("texts", values[values != EOS], examples[0])

    # Model

    def sized(self, processor: LanguageModelProcessor) -> Self:
        return replace(self, model=replace(self.model, vocabulary_size=len(processor.vocabulary)))

    @property
    def model_sizes(self) -> Mapping[str, int]:
        names = ("vocabulary_size", "hidden_size", "feedforward_size", "layers")
        return {name: getattr(self.model, name) for name in names}

    def build_model(self) -> LanguageModel:
        return LanguageModel(self.model)

    def model_values(self, model: LanguageModel) -> Mapping[str, float]:
        return alpha_values(model)

    def validation_batch(self, device_type: str) -> tuple[int, int | None]:
        return 256, CPU_SYMBOLS if device_type == "cpu" else GPU_SYMBOLS

    def attended_tokens(
        self, processor: LanguageModelProcessor, batch: LanguageModelBatch
    ) -> dict[str, Tokens]:
        ids, lengths = tokens_before(batch.tokens), batch.lengths
        return {"target": tokens_of_ids(ids, lengths, processor.vocabulary, processor.segmentation)}

    # Results

    @property
    def main_metric(self) -> str:
        return "perplexity" if self.model.output_alpha == 1 else "eps_perplexity"

    def describe_means(self, means: Mapping[str, float]) -> list[str]:
        perplexity = f"perplexity {_perplexity(means['loss']):.2f}"
        return [
            f"loss {means['loss']:.4f}",
            *([perplexity] if self.model.output_alpha == 1 else []),
            f"symbols {100 * means['accuracy']:.1f} %",
            f"attended {means['attention_support']:.1f}",
            f"considered {means['output_support']:.1f}",
            *alpha_range(means),
        ]

    def evaluate(
        self,
        run: Run,
        examples: Sequence[str],
        options: Any = None,
        progress: OnProgress | None = None,
    ) -> Evaluation:
        """Metrics per symbol; there are no predictions."""
        processor: Any = run.processor
        data = processor.encode(examples)
        self.check_data(data, examples)
        device = best_device()
        model: Any = run.model.to(device)
        data = data.to(device)
        means = validate(self, model, data)
        metrics = {name: means[name] for name in ("loss", "output_support", "attention_support")}
        if self.model.output_alpha == 1:
            metrics["perplexity"] = _perplexity(means["loss"])
        metrics |= smoothed_metrics(model, data, self.validation_batch(device.type))
        metrics |= mean_alpha(model)
        metrics |= {
            "accuracy": 100 * means["accuracy"],
            "symbols": int(data.rows.lengths.sum()),
            "examples": len(examples),
        }
        if progress is not None:
            progress(len(examples))
        return Evaluation(metrics, ())

    def predictor(
        self, run: Run, options: GenerationOptions, output: Output = "lines"
    ) -> ContinuationPredictor:
        from fenchel.tasks.language_model.predictor import ContinuationPredictor

        return ContinuationPredictor(run, options, output)

    # Report

    def summarize(self, metrics: Mapping[str, Any]) -> str:
        return (
            f"has a {MEANINGS[self.main_metric]} of {metrics[self.main_metric]:.2f}, "
            f"attending to {metrics['attention_support']:.1f} positions "
            f"and considering {metrics['output_support']:.1f} next symbols on average"
        )

    def training_charts(self, log: Log) -> list[Chart]:
        from fenchel.report import log_chart

        supports = {"attention_support": "attention", "output_support": "output"}
        title = "Validation: mean number of non-zeros in attention and at the output"
        return [
            *super().training_charts(log),
            log_chart(log, title, "non-zeros", supports),
            *alpha_charts(log),
        ]

    def report_sections(
        self, run: Run, examples: Sequence[str], evaluation: Evaluation, shown: int
    ) -> list[Section]:
        from fenchel.report import Section
        from fenchel.tasks.language_model.report import attention_of_text

        processor: Any = run.processor
        short = [text for text in examples if len(processor.symbols(text)) < LONGEST]
        blocks = [attention_of_text(run, text) for text in short[:shown]]
        text = (
            "Where the model looks for each symbol, in its last layer, on average over the heads."
        )
        return [Section("Examples", text if blocks else "", blocks)]


def _perplexity(loss: float) -> float:
    """The exponential of a loss; infinite where floats end."""
    return math.exp(loss) if loss < 700 else math.inf
