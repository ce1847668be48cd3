"""The table of the heads of a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from statistics import mean, median
from typing import Any, final

from fenchel.analysis.alphas import Histogram, alpha_histogram, alphas_of_heads
from fenchel.analysis.attention import KINDS
from fenchel.analysis.examples import ExampleSentence, Head
from fenchel.analysis.printed_heads import PlainTable, printed_tables
from fenchel.analysis.roles import MEASURES, ROLES, Record, best_role, has_role
from fenchel.analysis.statistics import DENSITY_BINS, LayerStatistics
from fenchel.analysis.unsure import UnsureSentence


@final
class HeadTable:
    """What `fenchel.analysis.heads` measures; printed, it shows layers, roles and the spread of α.

    Means are over all queries that are not padding. Layers and heads are counted from 0 on.

    Attributes:
        model: The name of the class of the model.
        sentences: The number of sentences measured.
        threshold: The confidence from which on a head has a role.
        examples: Sentences with the attention of all heads, as sparse matrices.
        unsure: For each head the sentences of which it is least sure, the most uncertain one first.
    """

    def __init__(
        self,
        *,
        model: str,
        sentences: int,
        threshold: float,
        statistics: Sequence[LayerStatistics],
        examples: Sequence[ExampleSentence],
    ) -> None:
        self.model, self.sentences, self.threshold = model, sentences, threshold
        self.examples = examples
        self._layers = sorted(statistics, key=lambda each: (KINDS.index(each.kind), each.layer))
        self._means = [layer.means() for layer in self._layers]
        self.unsure: dict[Head, list[UnsureSentence]] = {
            Head(layer.kind, layer.layer, head): sentences
            for layer in self._layers
            for head, sentences in enumerate(layer.unsure.by_head)
        }

    def records(self) -> list[Record]:
        """One dictionary per head, for example for `pandas.DataFrame`.

        The keys are

        - kind ("encoder", "context", "decoder", or "self" if the model does not say), layer, head,
          module (its name) and alpha;
        - density: the share of the visible keys whose weight is not zero;
        - uncertainty: the entropy of the weights divided by its maximum;
        - previous_token, current_token, next_token: the weight on the key at offset −1, 0, +1;
        - subword_merging: for each word, the maximum over its tokens of their weight on its other tokens,
          or the weight on itself of a single token; split_word_merging: the same without words of a
          single token; same_word: the weight of a token on all tokens of its word;
        - interrogation: the weight of interrogative words on a question mark;
        - role: the role with the highest confidence, if that reaches the threshold; confidence.

        A measure that the data do not have is None.
        """
        return [dict(record) for record in self._records]

    def layers(self) -> list[Record]:
        """One dictionary per layer: means over its heads, and diversity.

        Diversity is the Jensen–Shannon divergence of the heads of the layer, between 0 and 1.
        """
        return [
            {
                "kind": layer.kind,
                "layer": layer.layer,
                "module": layer.name,
                "heads": layer.heads,
                "queries": means["density"].counts[0],
                "alpha": _mean(record["alpha"] for record in self._of(layer)),
                "density": _mean(record["density"] for record in self._of(layer)),
                "uncertainty": _mean(record["uncertainty"] for record in self._of(layer)),
                "diversity": means["diversity"].values[0],
            }
            for layer, means in zip(self._layers, self._means, strict=True)
        ]

    def roles(self) -> list[Record]:
        """For each role, how many heads have it, and the median of their confidence."""
        found = []
        for role in ROLES:
            every = [record[role] for record in self._records if record[role] is not None]
            confident = [
                record[role] for record in self._records if has_role(record, role, self.threshold)
            ]
            found.append(
                {
                    "role": role,
                    "heads": len(confident),
                    "median_confidence": median(confident) if confident else None,
                    "highest": max(every, default=None),
                }
            )
        return found

    def alpha_histogram(self) -> Histogram | None:
        """The numbers of heads by their α and kind, in steps of 0.1; None if no head has an α."""
        return alpha_histogram(
            {
                kind: [
                    record["alpha"]
                    for record in self._records
                    if record["kind"] == kind and record["alpha"] is not None
                ]
                for kind in self._kinds
            }
        )

    def density_histogram(self) -> Histogram:
        """How often a head has a density on a sentence, by kind: one count per head and sentence."""
        counts = {kind: [0] * DENSITY_BINS for kind in self._kinds}
        for layer in self._layers:
            for of_head in layer.density_counts():
                pairs = zip(counts[layer.kind], of_head, strict=True)
                counts[layer.kind] = [total + count for total, count in pairs]
        return {
            "edges": [step / DENSITY_BINS for step in range(DENSITY_BINS + 1)],
            "counts": counts,
        }

    def to_json(self) -> dict[str, Any]:
        """Everything as a JSON object; weights are lists of keys and values without the zeros."""
        return {
            "model": self.model,
            "sentences": self.sentences,
            "threshold": self.threshold,
            "heads": self.records(),
            "layers": self.layers(),
            "roles": self.roles(),
            "alpha": self.alpha_histogram(),
            "density": self.density_histogram(),
            "examples": [sentence.to_json() for sentence in self.examples],
            "unsure": [
                {**head._asdict(), **sentence.to_json()}
                for head, sentences in self.unsure.items()
                for sentence in sentences
            ],
        }

    def tables(self) -> list[PlainTable]:
        """What is printed."""
        return printed_tables(self)

    def __repr__(self) -> str:
        return (
            f"<HeadTable of {self.model}: {len(self._records)} heads, {self.sentences} sentences>"
        )

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    @cached_property
    def _records(self) -> list[Record]:
        records = []
        for layer, means in zip(self._layers, self._means, strict=True):
            alphas = alphas_of_heads(layer.alpha, layer.heads)
            for head in range(layer.heads):
                record = {"kind": layer.kind, "layer": layer.layer, "head": head}
                record |= {"module": layer.name, "alpha": alphas[head]}
                for name in MEASURES:
                    record[name] = means[name].values[head] if name in means else None
                records.append(record | best_role(record, self.threshold))
        return records

    @property
    def _kinds(self) -> list[str]:
        return list(dict.fromkeys(layer.kind for layer in self._layers))

    def _of(self, layer: LayerStatistics) -> list[Record]:
        place = layer.kind, layer.name
        return [each for each in self._records if (each["kind"], each["module"]) == place]


def _mean(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known else None
