"""The public data sets of questions about images: DAQUAR and easy-VQA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fenchel.data.grids import cache_folder
from fenchel.data.public_set_info import (
    base_folder,
    public_set_file,
    public_set_info,
    read_by_name,
)
from fenchel.data.records import read_records
from fenchel.data.visual_questions import VisualQuestion, join_answers
from fenchel.extras import require

DEV_EVERY = 10  # of the training images, one in ten with all its questions is held out

ExamplesBySplit = dict[str, list[VisualQuestion]]


def read_visual_question_set(name: str, folder: str | Path, **options: Any) -> ExamplesBySplit:
    """The training, development and test questions of a public data set."""
    readers: dict[str, Callable[..., ExamplesBySplit]] = {"daquar": daquar, "easy_vqa": easy_vqa}
    return read_by_name(readers, "visual questions", name, folder, options)


def daquar(folder: str | Path) -> ExamplesBySplit:
    """Questions about photographs of indoor scenes; several answers to a question are one answer."""
    data = public_set_info("daquar")
    photographs = base_folder(data, folder) / "images_224x168"
    training, test = [], []
    fields = ("question", "answers", "image", "split")
    for record in read_records(public_set_file(data, folder, "qa.jsonl"), fields):
        image = photographs / f"{record.text('image')}.jpg"
        answer = join_answers(record.fields["answers"])
        question = VisualQuestion(image, record.text("question"), answer)
        (training if record.text("split") == "train" else test).append(question)
    return {**_held_out(training), "test": test}


def easy_vqa(folder: str | Path) -> ExamplesBySplit:
    """Questions about drawings of a single shape."""
    data, parts = public_set_info("easy_vqa"), {}
    for split in ("train", "test"):
        images = _unpacked(
            public_set_file(data, folder, f"{split}_images.npz"),
            cache_folder() / "easy_vqa" / split,
        )
        records = read_records(
            public_set_file(data, folder, f"{split}_questions.jsonl"),
            ("question", "answer", "image_id"),
        )
        parts[split] = [
            VisualQuestion(
                images / f"{record.label('image_id')}.png",
                record.text("question"),
                record.text("answer"),
            )
            for record in records
        ]
    return {**_held_out(parts["train"]), "test": parts["test"]}


def _held_out(questions: Sequence[VisualQuestion]) -> ExamplesBySplit:
    """Training questions, and those about one in ten images, which become the development set."""
    images = list(dict.fromkeys(question.image for question in questions))
    held = set(images[::DEV_EVERY])
    return {
        "train": [question for question in questions if question.image not in held],
        "dev": [question for question in questions if question.image in held],
    }


def _unpacked(archive: Path, folder: Path) -> Path:
    """A folder with the `images` of an .npz file as PNG files named by their `ids`."""
    image_module = require("PIL.Image", extra="vision")
    with np.load(archive) as stored:
        images, ids = stored["images"], stored["ids"]
    folder.mkdir(parents=True, exist_ok=True)
    for pixels, number in zip(images, ids, strict=True):
        path = folder / f"{number}.png"
        if not path.exists():
            image_module.fromarray(pixels).save(path)
    return folder
