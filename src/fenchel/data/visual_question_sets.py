"""The public data sets of questions about images: DAQUAR and easy-VQA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from fenchel.data.grids import cache_folder
from fenchel.data.lines import find_file
from fenchel.data.official import base_folder, official_set
from fenchel.data.records import read_records
from fenchel.data.visual_questions import VisualQuestion, join_answers
from fenchel.errors import FenchelError, unknown
from fenchel.extras import require

DEV_EVERY = 10  # of the training images, one in ten with all its questions is held out

Splits = dict[str, list[VisualQuestion]]


def read_visual_question_set(name: str, folder: str | Path) -> Splits:
    """The training, development and test questions of a public data set."""
    readers: dict[str, Callable[[Path], Splits]] = {"daquar": daquar, "easy_vqa": easy_vqa}
    if name not in readers:
        raise unknown("data set of visual questions", name, readers)
    return readers[name](base_folder(official_set(name), folder))


def daquar(folder: Path) -> Splits:
    """Questions about photographs of indoor scenes; several answers to a question are one answer."""
    training, test = [], []
    fields = ("question", "answers", "image", "split")
    for record in read_records(_file(folder, "qa.jsonl"), fields):
        image = folder / "images_224x168" / f"{record.text('image')}.jpg"
        answer = join_answers(record.fields["answers"])
        question = VisualQuestion(image, record.text("question"), answer)
        (training if record.text("split") == "train" else test).append(question)
    return {**_held_out(training), "test": test}


def easy_vqa(folder: Path) -> Splits:
    """Questions about drawings of a single shape."""
    parts = {}
    for split in ("train", "test"):
        images = _unpacked(
            _file(folder, f"{split}_images.npz"), cache_folder() / "easy_vqa" / split
        )
        records = read_records(
            _file(folder, f"{split}_questions.jsonl"), ("question", "answer", "image_id")
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


def _held_out(questions: Sequence[VisualQuestion]) -> Splits:
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


def _file(folder: Path, name: str) -> Path:
    file = find_file(folder / name)
    if file is None:
        raise FenchelError(f"{folder} must contain {name}")
    return file
