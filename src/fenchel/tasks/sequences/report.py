"""What a report shows of sequence models: metrics, supports, attention and lattices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import torch

from fenchel.data.vocabulary import EOS
from fenchel.report import (
    Block,
    Chart,
    Columns,
    Log,
    Prediction,
    Section,
    Table,
    attention_map,
    lattice_picture,
    log_chart,
    read_log,
)
from fenchel.search import Answer, Lattice
from fenchel.tasks.alphas import alpha_charts
from fenchel.tasks.search_options import PROOFS, proof
from fenchel.tasks.sequences.answers import answer_text, input_text
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.decoding import SequenceModel
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.supports import supports
from fenchel.training.run import Run
from fenchel.training.task import Evaluation

LONGEST = 60  # source symbols of a readable picture
END = "end"


def training_charts(log: Log) -> list[Chart]:
    """Loss, accuracies, supports and the learned α over the epochs."""
    return [
        log_chart(log, "Loss per symbol", "loss", {"train_loss": "training", "loss": "validation"}),
        log_chart(
            log,
            "Validation: share of correct symbols, and of sequences that are correct as a whole",
            "share",
            {"accuracy": "symbols", "exact": "sequences"},
        ),
        log_chart(
            log,
            "Validation: mean number of non-zeros in attention and at the output",
            "non-zeros",
            {"attention_support": "attention", "output_support": "output"},
        ),
        *alpha_charts(log),
    ]


def report_sections(
    run: Run, examples: Sequence[Example], evaluation: Evaluation, shown: int
) -> list[Section]:
    """How sparse the model is, how many answers have non-zero probability, and some examples."""
    answers = evaluation.predictions
    found = supports(_model(run), _codec(run), examples)
    by_position = Chart(
        "Mean number of non-zeros by position in the answer",
        "position",
        "non-zeros",
        {"attention": found.series("attention"), "output": found.series("output")},
    )
    chosen = choose(examples, answers, _codec(run), shown)
    text = "Every answer of non-zero probability that the search found, and where the model looked."
    return [
        Section("Supports", blocks=[by_position, _answer_counts(answers)]),
        Section(
            "Examples",
            text if chosen else "",
            [prediction_block(run, examples[k], answers[k]) for k in chosen],
        ),
    ]


def comparison_sections(
    runs: Mapping[str, Run],
    examples: Sequence[Example],
    evaluations: Mapping[str, Evaluation],
    shown: int,
) -> list[Section]:
    """Validation and supports of all models in shared charts, and the same examples for each."""
    found = {name: supports(_model(run), _codec(run), examples) for name, run in runs.items()}
    logs = {name: read_log(run.log_path) for name, run in runs.items()}
    exact = {name: log.get("exact", []) for name, log in logs.items()}
    title = "Validation: share of sequences that are correct as a whole"
    charts: list[Block] = [Chart(title, "epoch", "share", exact)]
    for part, where in (("attention", "in attention"), ("output", "at the output")):
        title = f"Mean number of non-zeros {where}, by position in the answer"
        series = {name: each.series(part) for name, each in found.items()}
        charts.append(Chart(title, "position", "non-zeros", series))
    first = next(iter(runs))
    chosen = choose(examples, evaluations[first].predictions, _codec(runs[first]), shown)
    return [
        Section("Training and supports", blocks=[Columns(charts)]),
        *(
            Section(
                f"{name}: examples",
                blocks=[
                    prediction_block(run, examples[k], evaluations[name].predictions[k])
                    for k in chosen
                ],
            )
            for name, run in runs.items()
        ),
    ]


def choose(
    examples: Sequence[Example], answers: Sequence[Answer], codec: Codec, count: int
) -> list[int]:
    """Indices of examples with several answers, with a wrong one, with a clear one, in turns.

    They are spread over the languages, and taken from those short enough for a readable picture of the
    attention, if there are any.
    """
    kinds: dict[str, list[int]] = {"several": [], "wrong": [], "clear": []}
    lengths = [len(codec.source_symbols(example)) for example in examples]
    some_are_short = min(lengths, default=0) <= LONGEST
    for place, (example, answer) in enumerate(zip(examples, answers, strict=True)):
        if some_are_short and lengths[place] > LONGEST:
            continue
        correct = codec.decode(answer.best.tokens) == _target(example, codec)
        several = answer.complete and len(answer.hypotheses) > 1
        kinds["several" if several else "clear" if correct else "wrong"].append(place)
    seen: Counter[str] = Counter()
    chosen: list[int] = []
    turns = cycle(kinds.values())
    while len(chosen) < count and any(kinds.values()):
        if some := next(turns):
            place = min(some, key=lambda place: (seen[examples[place].group], place))
            some.remove(place)
            seen[examples[place].group] += 1
            chosen.append(place)
    return sorted(chosen)


def prediction_block(run: Run, example: Example, answer: Answer) -> Prediction:
    """An example with its answers as a lattice, and the attention of the best one."""
    codec = _codec(run)
    caption = PROOFS[proof(answer)].capitalize()
    lattice = Lattice.of(answer)
    blocks: list[Any] = [lattice_picture(lattice, codec.target_symbol, codec.separator, caption)]
    source = codec.source_symbols(example)
    if len(source) <= LONGEST:
        weights = attention_weights(_model(run), codec, example, answer.best.tokens)
        written = [*codec.target_vocabulary.symbols(answer.best.tokens), END]
        caption = "Attention while this answer is written"
        blocks.append(attention_map(weights, source, written, caption))
    return Prediction(
        source=input_text(example, codec),
        answer=answer_text(answer.best.tokens, codec),
        expected=_target(example, codec),
        blocks=[Columns(blocks)],
        certified=answer.certified,
    )


@torch.no_grad()
def attention_weights(
    model: SequenceModel, codec: Codec, example: Example, tokens: Sequence[int]
) -> list[list[float]]:
    """The attention while a model writes `tokens`: one row per token, the end included."""
    device = next(model.parameters()).device
    source = torch.tensor([codec.encode_source(example)])
    target = torch.tensor([[*tokens, EOS]], device=device)
    seen = model.attend(source.to(device), torch.tensor([source.shape[1]]), target)
    return seen.attention[0].tolist()


def _answer_counts(answers: Sequence[Answer]) -> Table:
    """How many answers have non-zero probability, where all of them were found."""
    counts = Counter(len(answer.hypotheses) for answer in answers if answer.complete)
    rows = [(str(count), counts[count]) for count in sorted(counts)]
    rows.append(("more than the search kept", len(answers) - sum(counts.values())))
    return Table("Answers of non-zero probability", ["answers", "examples"], rows)


def _target(example: Example, codec: Codec) -> str | None:
    """The correct answer in the codec's normal form."""
    return None if example.target is None else codec.normalized(example.target)


def _model(run: Run) -> Any:
    return run.model


def _codec(run: Run) -> Any:
    return run.processor
