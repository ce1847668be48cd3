"""Questions about images: public sets, processors and batches."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fenchel import FenchelError
from fenchel.data.visual_question_sets import read_visual_question_set
from fenchel.data.visual_questions import (
    UNKNOWN_ANSWER,
    VisualQuestion,
    VisualQuestionProcessor,
    iterate_visual_questions,
)
from tests.pictures import drawing


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_daquar_is_split_by_image(tmp_path):
    rows = [
        {"image": f"image{k}", "question": "what is it", "answers": ["b", "a"], "split": split}
        for k, split in enumerate(["train"] * 20 + ["test"] * 3)
        for _ in range(2)
    ]
    write(tmp_path / "qa.jsonl", rows)
    parts = read_visual_question_set("daquar", tmp_path)
    assert {name: len(part) for name, part in parts.items()} == {"train": 36, "dev": 4, "test": 6}
    images = {name: {each.image for each in part} for name, part in parts.items()}
    assert not images["train"] & images["dev"]
    assert parts["test"][0].image == tmp_path / "images_224x168" / "image20.jpg"
    assert parts["test"][0].answer == "a, b"


def test_the_images_of_easy_vqa_are_unpacked(tmp_path):
    draw = np.random.default_rng(0)
    for split, count in (("train", 11), ("test", 2)):
        images = draw.integers(0, 255, (count, 4, 4, 3), np.uint8)
        np.savez(tmp_path / f"{split}_images.npz", images=images, ids=np.arange(count))
        rows = [{"question": "which?", "answer": "red", "image_id": k} for k in range(count)]
        write(tmp_path / f"{split}_questions.jsonl", rows)
    for _ in range(2):
        parts = read_visual_question_set("easy_vqa", tmp_path)
        assert [len(part) for part in parts.values()] == [9, 2, 2]
        assert all(each.image.is_file() for part in parts.values() for each in part)


def test_names_of_images_are_relative_to_the_file(tmp_path):
    drawing(tmp_path / "a.png")
    for name, text in {
        "a.tsv": "a.png\twhat is it ?\tchair\n",
        "a.jsonl": '{"image": "a.png", "question": "what is it ?", "answer": ["chair"]}\n',
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (found,) = iterate_visual_questions(tmp_path / name, grid=1)
        assert found == (tmp_path / "a.png", "what is it ?", "chair", f"{tmp_path / name}:1")


def test_a_processor_is_stored_and_gathers_batches(tmp_path):
    red, blue = drawing(tmp_path / "r.png"), drawing(tmp_path / "b.png", (0, 0, 250))
    examples = [
        VisualQuestion(red, "What colour is it?", "red"),
        VisualQuestion(blue, "colour", "blue"),
        VisualQuestion(red, "is it", "blue"),
    ]
    fitted = VisualQuestionProcessor.fit(examples, grid=1, max_words=4)
    processor = VisualQuestionProcessor.from_state(fitted.state(), "processor.json")
    assert processor == fitted
    assert processor.answers == ["blue", "red"]
    assert processor.words("What colour is it today?") == ["what", "colour", "is", "it"]
    unknown = VisualQuestion(blue, "it", "violet")
    data = processor.encode([*examples, unknown])
    batch = data.batch(torch.tensor([2, 0, 3]))
    assert batch.lengths.tolist() == [2, 4, 1]
    assert batch.answers.tolist() == [0, 1, UNKNOWN_ANSWER]
    assert batch.grids.shape == (3, 1, 1280)
    assert batch.grids[0].equal(batch.grids[1])
    assert not batch.grids[0].equal(batch.grids[2])
    with pytest.raises(FenchelError, match="must have a word that occurs in the training"):
        processor.encode([VisualQuestion(red, "qué es")])
    with pytest.raises(FenchelError, match="at least two answers, got blue"):
        VisualQuestionProcessor.fit(examples[1:], grid=1, max_words=4)
