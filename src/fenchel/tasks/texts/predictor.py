"""Labels with probabilities, and the words attended, for `fenchel predict`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from fenchel.data.bad_items import BadItems
from fenchel.data.texts import LabelledText, iterate_labelled_texts, text_fields
from fenchel.errors import FenchelError
from fenchel.stored_json import shortened
from fenchel.tasks.texts.classification import Classification, classify
from fenchel.tasks.texts.highlights import highlighted, styled_words
from fenchel.training.task import Columns, OnProgress, Predictor

if TYPE_CHECKING:
    from fenchel.training.run import Run


@final
@dataclass(frozen=True)
class TextPredictor(Predictor):
    """Predicts the labels of texts."""

    run: Run
    example: type[LabelledText]

    @property
    def line_format(self) -> str:
        fields = text_fields(self.example)
        return "a text" if len(fields) == 1 else f"{'<tab>'.join(fields)}"

    def read(
        self, path: str, columns: Columns | None = None, bad: BadItems | None = None
    ) -> Iterator[LabelledText | None]:
        options: dict[str, Any] = {"columns": columns, "keep_blank": True, "bad": bad}
        return iterate_labelled_texts(path, self.example, need_targets=False, **options)

    def parse(self, line: str) -> LabelledText:
        texts = [text.strip() for text in line.split("\t")]
        if len(texts) != len(text_fields(self.example)) or not all(texts):
            raise FenchelError(f"line must be {self.line_format}, got {shortened(line.strip())}")
        return self.example(*texts)

    def predict(
        self, examples: Sequence[LabelledText], progress: OnProgress | None = None
    ) -> list[Classification]:
        return classify(self.run, examples, progress)

    def to_json(self, example: LabelledText, prediction: Classification) -> dict[str, Any]:
        texts = dict(zip(text_fields(self.example), example.texts, strict=True))
        found: dict[str, Any] = {"labels": prediction.labels, "words": prediction.attended}
        if prediction.density is not None:
            parts = {"mean": prediction.density.loc, "variance": prediction.density.variance}
            found["density"] = {name: value.item() for name, value in parts.items()}
        return texts | found

    def to_lines(self, example: LabelledText, prediction: Classification) -> list[str]:
        words = sorted((pair for pair in prediction.attended if pair[1] > 0), key=lambda p: -p[1])
        shown = " ".join(f"{word}:{weight:.2f}" for word, weight in words)
        return [f"{prediction.best}\t{prediction.labels[prediction.best]:.4g}\t{shown}"]

    def to_table(
        self, examples: Sequence[LabelledText], predictions: Sequence[Classification], width: int
    ) -> Any:
        """The label and the text, in which words without weight are dim and groups stand out."""
        from rich.console import Group
        from rich.text import Text

        lines = []
        for example, found in zip(examples, predictions, strict=True):
            line = Text(f"{found.caption}  ", style="bold")
            for word, style in styled_words(highlighted(self.run, found)):
                line.append(word, style=f"not bold {style}")
            for other in example.texts[1:]:
                line.append(f"→ {other}", style="not bold italic")
            lines.append(line)
        return Group(*lines)
