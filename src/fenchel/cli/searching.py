"""Which search `fenchel predict` was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from fenchel.data import Example
from fenchel.errors import rule
from fenchel.recipes.figures import best_device
from fenchel.recipes.running import Trained
from fenchel.search import Answer, Completion, autocomplete, beam_search, exact_search, sample
from fenchel.training import predict


class Searching:
    """Answers for examples, found as the options say: by a beam, exactly, or by sampling."""

    def __init__(
        self,
        trained: Trained,
        beam: int | None,
        *,
        answers: int,
        exact: bool,
        samples: int | None,
        seed: int,
    ) -> None:
        if exact and samples:
            raise rule("answers are searched or drawn", expected="--exact or --samples", got="both")
        self.run, self.settings = trained.run, trained.recipe.search
        self.width = beam or max(answers, self.settings.width)
        self.samples, self.device = samples, best_device()
        self._generator = torch.Generator(self.device).manual_seed(seed)
        exactly = partial(exact_search, answers=answers)
        self._search = self._draw if samples else exactly if exact else beam_search

    def __call__(
        self, examples: Sequence[Example], progress: Callable[[int], object] | None = None
    ) -> list[Answer]:
        """The answers, one an example."""
        return predict(
            self.run,
            None,
            examples,
            width=self.width,
            batch_size=self.settings.sentences,
            max_length=self.settings.max_length,
            device=self.device,
            progress=progress,
            search=self._search,
        )

    def completion(self, example: Example, tokens: Sequence[int]) -> Completion:
        """What the model considers after every symbol of `tokens`."""
        source = torch.tensor([self.run.codec.encode_source(example)], device=self.device)
        stepper = self.run.model.to(self.device).stepper(source, torch.tensor([source.shape[1]]))
        return autocomplete(stepper, [tokens])[0]

    def _draw(
        self, stepper: Any, *, width: int, max_length: int, bos: int, eos: int
    ) -> list[Answer]:
        """Samples as answers that prove nothing."""
        drawn = sample(
            stepper,
            self.samples or 1,
            max_length=max_length,
            generator=self._generator,
            bos=bos,
            eos=eos,
        )
        return [Answer(hypotheses, dropped=1.0) for hypotheses in drawn]
