"""Which token followed which: from the places of a beam back to sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fenchel.search.answers import Answer, Hypothesis
from fenchel.search.stepper import Stepper

if TYPE_CHECKING:
    from fenchel.search.beam import Beam


class History:
    """What every step of a beam search chose: a token and the place of the prefix it continues."""

    def __init__(self, stepper: Stepper, width: int, max_length: int) -> None:
        shape = (max_length, stepper.batch_size, width)
        self.steps = torch.zeros(shape, dtype=torch.int64, device=stepper.device)
        self.length, self.width = 0, width

    def append(self, rows: Tensor, tokens: Tensor, parents: Tensor) -> None:
        """One more step, for the sentences `rows`."""
        self.steps[self.length].index_copy_(0, rows, torch.add(parents, tokens, alpha=self.width))
        self.length += 1

    def answers(self, beams: list[Beam]) -> list[Answer]:
        """The answers of beams that together hold all sentences; of two that hold one, the later."""
        count = beams[0].finished.shape[-1]
        size = self.steps.shape[1]
        finished = np.full((size, count), -np.inf)
        ends = np.zeros((size, count), dtype=np.int64)
        prefixes = np.full((size, self.width), -np.inf)
        dropped = np.full(size, -np.inf)
        for beam in beams:
            rows = beam.rows.cpu().numpy()
            finished[rows], ends[rows] = beam.finished.cpu().numpy(), beam.ends.cpu().numpy()
            prefixes[rows], dropped[rows] = beam.scores.cpu().numpy(), beam.dropped.cpu().numpy()
        unfinished = (finished == -np.inf).all(-1)
        places = np.broadcast_to(self.length * self.width + np.arange(self.width), prefixes.shape)
        sequences = self._sequences(ends)
        cut = self._sequences(places) if unfinished.any() else []
        answers = []
        for row in range(size):
            scores = prefixes[row] if unfinished[row] else finished[row]
            tokens = cut[row] if unfinished[row] else sequences[row]
            hypotheses = [
                Hypothesis.of(sequence, float(score), finished=not unfinished[row])
                for sequence, score in zip(tokens, scores, strict=True)
                if score != -np.inf
            ]
            answers.append(Answer.of(hypotheses, float(dropped[row])))
        return answers

    def _sequences(self, ends: Any) -> list[list[tuple[int, ...]]]:
        """The tokens that lead to the places `ends` (B, N)."""
        steps = self.steps[: self.length].cpu().numpy()
        lengths: Any = ends // self.width
        slots = ends % self.width
        rows = np.arange(len(ends))[:, None]
        tokens: Any = np.zeros((*ends.shape, self.length), dtype=np.int64)
        for length in range(self.length - 1, -1, -1):
            inside = length < lengths
            token, parent = np.divmod(steps[length][rows, slots], self.width)
            tokens[..., length] = token
            slots = np.where(inside, parent, slots)
        return [
            [tuple(path[:length]) for path, length in zip(*of_row, strict=True)]
            for of_row in zip(tokens.tolist(), lengths.tolist(), strict=True)
        ]
